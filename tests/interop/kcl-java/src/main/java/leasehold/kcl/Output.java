package leasehold.kcl;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Lines of JSON on stdout. Whole lines only, and nothing stays in a buffer. */
final class Output {
    private static final OutputStream STDOUT = new FileOutputStream(FileDescriptor.out);

    private Output() {}

    /** Writes lines at once. */
    static synchronized void write(CharSequence lines) {
        try {
            STDOUT.write(lines.toString().getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What happened to a shard, or with an empty shard to the worker. */
    static void event(String event, String shard, long session, String detail) {
        StringBuilder line = new StringBuilder("{\"event\":");
        text(line, event).append(",\"shard\":");
        text(line, shard).append(",\"session\":").append(session).append(",\"detail\":");
        write(text(line, detail).append("}\n"));
    }

    /** Appends a string as JSON spells it. */
    static StringBuilder text(StringBuilder out, CharSequence text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"');
    }
}
