package leasehold.kcl;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.LongConsumer;

/** Options of the form {@code --name=value} or {@code --name value}. What is not given keeps the library's default. */
final class Options {
    private final Map<String, String> given = new LinkedHashMap<>();
    private final List<String> asked = new ArrayList<>();

    Options(String[] arguments) {
        for (int i = 0; i < arguments.length; i++) {
            String argument = arguments[i];
            if (!argument.startsWith("--")) {
                throw new IllegalArgumentException("expected an option such as --stream orders, found " + argument);
            }
            int equals = argument.indexOf('=');
            if (equals > 0) {
                given.put(argument.substring(2, equals), argument.substring(equals + 1));
            } else if (i + 1 < arguments.length) {
                given.put(argument.substring(2), arguments[++i]);
            } else {
                throw new IllegalArgumentException("expected a value after " + argument + ", found the end of the line");
            }
        }
    }

    /** An option that must be given. */
    String need(String name) {
        asked.add(name);
        String value = given.get(name);
        if (value == null) {
            throw new IllegalArgumentException("expected --" + name + " VALUE among the options, found " + given.keySet());
        }
        return value;
    }

    String text(String name, String otherwise) {
        asked.add(name);
        return given.getOrDefault(name, otherwise);
    }

    OptionalLong number(String name) {
        asked.add(name);
        String value = given.get(name);
        if (value == null) {
            return OptionalLong.empty();
        }
        try {
            return OptionalLong.of(Long.parseLong(value));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("--" + name + ": expected a whole number, found " + value, e);
        }
    }

    /** Sets a number if it is given. */
    void set(String name, LongConsumer setter) {
        number(name).ifPresent(setter);
    }

    /** Refuses options that nothing asked for. */
    void nothingElse() {
        for (String name : given.keySet()) {
            if (!asked.contains(name)) {
                throw new IllegalArgumentException("expected one of the options " + asked + ", found --" + name);
            }
        }
    }
}
