//! Timelines in a real browser: pages run without errors, and draw every bar and mark.
//!
//! Needs Chromium; on machines without, the tests are skipped with one line on stderr. `LEASEHOLD_REQUIRE_SERVERS=1`
//! turns a skipped test into a failed test. The pages and screenshots are left below `target/tmp/browser/`. In the copy
//! of the sources with the deliberate bugs, the small world has a bug:
//!
//!     cargo run --release -- mutants --prepare
//!     cargo test --manifest-path target/deliberate-bugs/Cargo.toml --release -p leasehold-sim --test browser
//!
//! The two pictures in `sim/docs/` are `small-light.png` and `large-dark.png` of that run, made small with `pngquant 128`.
#![allow(clippy::disallowed_methods, reason = "processes are waited for by the clock")]

use leasehold_sim::deliberate::{Bug, HAS_BUGS};
use leasehold_sim::run::{Options, WorldReport, run_seed};
use leasehold_sim::timeline::builder::Builder;
use leasehold_sim::timeline::picture::{Bar, BarKind, MarkKind, Timeline};
use leasehold_sim::timeline::{html, world};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A page is drawn within this time or not at all, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The browser, or none with a line on stderr.
fn chromium(test: &str) -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        let what = "expected chromium on the path, found none; install Debian's package chromium";
        assert!(std::env::var_os("LEASEHOLD_REQUIRE_SERVERS").is_none(), "{test}: {what}");
        let _ = writeln!(io::stderr(), "skipped {test}: {what}");
    }
    found
}

/// A process ended with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory of one test.
struct Desk {
    browser: &'static str,
    directory: PathBuf,
}

impl Desk {
    fn new(test: &str) -> Option<Self> {
        let browser = chromium(test)?;
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser").join(test);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        Some(Self { browser, directory })
    }

    fn write(&self, name: &str, timeline: &Timeline) -> PathBuf {
        let file = self.directory.join(name).with_extension("html");
        std::fs::write(&file, html::page(timeline)).expect("a page that is written");
        file
    }

    /// Runs the browser on a page, with a profile of its own.
    fn browse(&self, page: &Path, wish: &str, theme: Theme, more: &[&str]) -> String {
        let output = self.directory.join(format!("{}.out", theme.name()));
        let profile = self.directory.join("profile");
        let _ = std::fs::remove_dir_all(&profile);
        let file = std::fs::File::create(&output).expect("a file for the output");
        let mut command = Command::new(self.browser);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--window-size=1400,860", "--hide-scrollbars", theme.switch()])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(more)
            .arg(format!("file://{}#{wish}", page.display()))
            .stdout(file)
            .stderr(Stdio::null());
        let mut browser = Running(command.spawn().expect("the browser starts"));
        let began = Instant::now();
        let status = loop {
            if let Some(status) = browser.0.try_wait().expect("a process that can be waited for") {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "the browser is not done after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(50));
        };
        assert!(status.success(), "the browser ended with {status}");
        std::fs::read_to_string(&output).expect("the output as text")
    }

    /// The page's own state after drawing.
    fn state(&self, page: &Path, wish: &str, theme: Theme) -> State {
        State::of(&self.browse(page, wish, theme, &["--dump-dom"]))
    }

    fn picture(&self, page: &Path, wish: &str, theme: Theme) -> u64 {
        let name = page.file_stem().expect("a name").to_string_lossy().into_owned();
        let picture = self.directory.join(format!("{name}-{}.png", theme.name()));
        self.browse(page, wish, theme, &[&format!("--screenshot={}", picture.display())]);
        std::fs::metadata(&picture).expect("a picture").len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Theme {
    Light,
    Dark,
}

impl Theme {
    fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    /// The browser flag behind the page's media query.
    fn switch(self) -> &'static str {
        match self {
            Theme::Light => "--blink-settings=preferredColorScheme=1",
            Theme::Dark => "--blink-settings=preferredColorScheme=0",
        }
    }
}

/// The tag of the body.
#[derive(Debug)]
struct State(String);

impl State {
    fn of(dom: &str) -> Self {
        let at = dom.find("<body").expect("a body");
        let length = dom[at..].find('>').expect("a tag with an end");
        Self(dom[at..at + length].to_owned())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.0.split_once(&format!("data-{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    }

    fn number(&self, name: &str) -> usize {
        let value = self.get(name).unwrap_or_else(|| panic!("data-{name} is missing in {self:?}"));
        value.parse().unwrap_or_else(|_| panic!("data-{name} is no number in {self:?}"))
    }

    /// Asserts that no script failed, and that the page shows this timeline in this theme.
    fn shows(&self, timeline: &Timeline, theme: Theme) {
        assert_eq!(self.get("error"), None, "{self:?}");
        assert_eq!(self.get("ready"), Some("yes"), "{self:?}");
        assert_eq!(self.get("theme"), Some(theme.name()), "{self:?}");
        assert_eq!(self.number("lanes"), timeline.workers.len());
        assert_eq!(self.number("events"), timeline.marks.len());
        self.boxes_lie_apart();
    }

    /// Asserts that no two texts above the lanes overlap (numbers of the axis, labels of faults and violations).
    fn boxes_lie_apart(&self) {
        let number = |text: &str| -> f64 { text.parse().expect("a number") };
        let text = self.get("boxes").expect("boxes");
        let boxes: Vec<Vec<f64>> = text
            .split(';')
            .filter(|one| !one.is_empty())
            .map(|one| one.split(',').map(number).collect())
            .collect();
        for (n, one) in boxes.iter().enumerate() {
            assert!(one.len() == 4 && one[0] >= 0.0 && one[1] >= 0.0, "{one:?}");
            for other in &boxes[n + 1..] {
                let apart = one[0] + one[2] <= other[0]
                    || other[0] + other[2] <= one[0]
                    || one[1] + one[3] <= other[1]
                    || other[1] + other[3] <= one[1];
                assert!(apart, "{one:?} lies upon {other:?} in {boxes:?}");
            }
        }
    }
}

fn record(seed: u64, bug: Option<Bug>) -> WorldReport {
    let options = Options { record: true, bug, ..Options::default() };
    run_seed(seed, &options)
}

/// Whether a bar is a pixel wide.
fn is_wide(bar: &Bar, timeline: &Timeline) -> bool {
    (bar.to - bar.from) * 900 > timeline.end
}

/// A small failing world: with a deliberate bug in the copy with bugs, else with an invented violation.
fn small() -> Timeline {
    use leasehold_sim::oracles::{Property, Violation};
    let bug = HAS_BUGS.then(|| Bug::named("stamp-at-receipt").expect("a bug of the catalogue"));
    let mut least = (0..200)
        .map(|seed| record(seed, bug))
        .find(|report| {
            let failed = bug.is_none() || !report.found.violations.is_empty();
            let timeline = world::timeline(report);
            let small = timeline.workers.len() >= 2 && timeline.marks.len() <= 1_000;
            failed && small && timeline.bars.iter().any(|bar| is_wide(bar, &timeline))
        })
        .expect("one of two hundred worlds is small, has two workers and a wide bar, and fails if it can");
    if bug.is_none() {
        least.found.violations.push(Violation {
            property: Property::ExclusiveOwnership,
            at: least.found.simulated / 2,
            summary: "two workers believe to own shard 0, which is said for the sake of this test".to_owned(),
            of_others: false,
        });
    }
    world::timeline(&least)
}

/// A large world: at least 10,000 events.
fn large() -> Timeline {
    // The worlds before are small.
    (6..200)
        .map(|seed| world::timeline(&record(seed, None)))
        .find(|timeline| timeline.marks.len() >= 10_000 && timeline.workers.len() >= 3)
        .expect("one of these worlds is large")
}

#[test]
fn a_small_failure_is_drawn_in_light_and_dark() {
    let Some(desk) = Desk::new("small") else { return };
    let timeline = small();
    let page = desk.write("small", &timeline);
    for theme in [Theme::Light, Theme::Dark] {
        let state = desk.state(&page, "", theme);
        state.shows(&timeline, theme);
        // With the whole time in view, the page draws every bar at least a pixel wide.
        let bars = timeline.bars.iter().filter(|bar| is_wide(bar, &timeline)).count();
        assert!(state.number("bars") >= bars && bars > 0, "{state:?}, expected {bars}");
        assert!(state.number("bars") <= timeline.bars.len() + timeline.shards.len(), "{state:?}");
        assert_eq!(state.number("listed"), timeline.marks.len());
        assert!(desk.picture(&page, "", theme) > 10_000);
    }
    // The page follows the options of a link: the first half of the time shows fewer events, and one kind shows only
    // its events.
    let last = timeline.marks.iter().map(|mark| mark.at).max().unwrap_or(0);
    let half = last as f64 / 2e6;
    let state = desk.state(&page, &format!("from=0&to={half}&theme=dark"), Theme::Light);
    state.shows(&timeline, Theme::Dark);
    assert!(state.number("listed") < timeline.marks.len(), "{state:?}");
    let state = desk.state(&page, "filter=kind:violation", Theme::Light);
    assert_eq!(state.number("listed"), timeline.violations.len());
}

#[test]
fn a_large_world_is_drawn_quickly_with_narrow_bars_merged() {
    let Some(desk) = Desk::new("large") else { return };
    let timeline = large();
    let page = desk.write("large", &timeline);
    // The number of drawn marks depends on the pixels: three times the events give no more marks.
    let mut thrice = timeline.clone();
    thrice.marks = timeline.marks.iter().flat_map(|mark| vec![mark.clone(); 3]).collect();
    let crowded = desk.state(&desk.write("thrice", &thrice), "", Theme::Light);
    crowded.shows(&thrice, Theme::Light);
    for theme in [Theme::Light, Theme::Dark] {
        let state = desk.state(&page, "", theme);
        state.shows(&timeline, theme);
        assert_eq!(state.number("marks"), crowded.number("marks"));
        assert_eq!(state.number("bars"), crowded.number("bars"));
        assert!(state.number("marks") < timeline.marks.len(), "nothing is merged: {state:?}");
        assert!(state.number("bars") > 0, "{state:?}");
        assert!(desk.picture(&page, "", theme) > 10_000);
    }
}

#[test]
fn the_page_obeys_wheel_keys_pointer_and_filter() {
    let Some(desk) = Desk::new("hands") else { return };
    let timeline = small();
    // A person's actions, as a script at the end of the page. Each step waits for the frame after the step before.
    let hands = r#"<script>
      const view = document.getElementById('view'), body = document.body, got = [];
      const key = (key) => view.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      const at = (type, x, y, more) => view.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: y, pointerId: 1, bubbles: true, ...more }));
      const box = view.getBoundingClientRect(), middle = [box.left + box.width / 2, box.top + box.height / 2];
      view.setPointerCapture = () => {};
      const steps = [
        () => { for (let n = 0; n < 4; n++) view.dispatchEvent(new WheelEvent('wheel', { deltaY: -300, clientX: middle[0], clientY: middle[1], cancelable: true })); },
        () => key('0'),
        () => key('t'),
        () => { key('+'); key('+'); key('+'); key('+'); },
        () => { for (let n = 0; n < 80; n++) key('ArrowLeft'); },
        () => { at('pointerdown', middle[0] + 300, middle[1], { button: 0 }); at('pointermove', middle[0] - 200, middle[1]); at('pointerup', middle[0] - 200, middle[1]); },
        () => { key('0'); key('Escape'); key('n'); },
        () => { const filter = document.getElementById('filter'); filter.value = 'kind:violation'; filter.dispatchEvent(new Event('input')); },
      ];
      const next = () => setTimeout(() => {
        got.push(body.dataset.listed + ':' + document.getElementById('list').querySelector('time')?.textContent + ':' + body.dataset.theme);
        if (steps.length) { steps.shift()(); next(); return; }
        body.dataset.hands = got.join(' ');
      }, 50);
      next();
    </script>"#;
    let page = desk.write("hands", &timeline);
    let text = std::fs::read_to_string(&page).expect("the page");
    // A browser without a screen draws no frames in virtual time.
    let frames = "<head><script>window.requestAnimationFrame = (frame) => setTimeout(frame, 10);</script>";
    let text = text.replacen("<head>", frames, 1).replace("</body>", &format!("{hands}</body>"));
    std::fs::write(&page, text).expect("a page with hands");
    let dom = desk.browse(&page, "", Theme::Light, &["--virtual-time-budget=5000", "--dump-dom"]);
    let state = State::of(&dom);
    state.shows(&timeline, Theme::Dark);
    let told = state.get("hands").unwrap_or_else(|| panic!("the hands did not finish: {state:?}"));
    let steps: Vec<(usize, &str, &str)> = told
        .split(' ')
        .map(|step| {
            let mut parts = step.split(':');
            let count = parts.next().and_then(|count| count.parse().ok()).expect("a count");
            (count, parts.next().unwrap_or(""), parts.next().unwrap_or(""))
        })
        .collect();
    let all = timeline.marks.len();
    let [whole, wheel, fit, toggled, zoomed, left, dragged, chosen, filtered] = steps.as_slice() else {
        panic!("nine frames are told: {told}");
    };
    assert!(whole.0 == all && wheel.0 < all && fit.0 == all, "{told}");
    assert_eq!((whole.2, toggled.2), ("light", "dark"), "{told}");
    assert!(zoomed.0 < all, "{told}");
    assert_ne!(left, dragged, "dragging moves the view: {told}");
    assert_eq!(chosen.0, all, "{told}");
    assert_eq!(filtered.0, timeline.violations.len(), "{told}");
}

#[test]
fn the_labels_of_many_faults_lie_apart_and_none_is_left_out() {
    let Some(desk) = Desk::new("labels") else { return };
    let mut builder = Builder::default();
    let worker = builder.worker("w0");
    builder.up(0, worker, "w0 begins life 0".to_owned());
    // At one moment, at every second, closer and closer, and at both ends.
    let seconds = (0..60).map(|second| second * 1_000_000);
    let closer = (0..400u64).map(|n| 60_000_000 - n * n * 300);
    let crowd = (0..300).map(|n| 20_000_000 + n % 3);
    let mut times: Vec<u64> = seconds.chain(closer).chain(crowd).chain([60_000_000; 5]).collect();
    times.sort_unstable();
    for (n, at) in times.iter().enumerate() {
        let text =
            format!("w0: {} (request {n})", ["slow", "lost answer", "a fault with a long name"][n % 3]);
        builder.mark(*at, MarkKind::Fault, Some(worker), None, text);
    }
    for at in [0, 7_000_000, 7_000_001, 7_400_000, 8_000_000, 60_000_000] {
        builder.mark(at, MarkKind::Violation, None, None, "exclusive-ownership: two owners".to_owned());
    }
    let timeline = builder.finish(60_000_000);
    let page = desk.write("labels", &timeline);
    for size in ["1400,860", "820,560", "2200,1300"] {
        let window = format!("--window-size={size}");
        for (wish, faults, violations) in [("", times.len(), 6), ("from=6&to=9", 4, 4)] {
            let dom = desk.browse(&page, wish, Theme::Light, &[&window, "--dump-dom"]);
            let state = State::of(&dom);
            state.shows(&timeline, Theme::Light);
            // Each fault and violation of the narrower time has a label, and no fault of another time has a label.
            assert_eq!(state.number("flagged"), faults + violations, "{size} {wish}: {state:?}");
        }
    }
    assert!(desk.picture(&page, "", Theme::Dark) > 10_000);
}

#[test]
fn a_page_opens_with_its_legend() {
    let Some(desk) = Desk::new("legend") else { return };
    let page = desk.write("legend", &small());
    let legend = |wish| {
        let dom = desk.browse(&page, wish, Theme::Light, &["--dump-dom"]);
        let (_, rest) = dom.split_once("<section id=\"legend\"").expect("a legend");
        rest.split_once('>').expect("an end").0.to_owned()
    };
    assert!(!legend("").contains("hidden"));
    assert!(legend("legend=off").contains("hidden"));
}

#[test]
fn hostile_names_are_shown_and_not_run() {
    let Some(desk) = Desk::new("hostile") else { return };
    let hostile = "</script><script>document.body.dataset.owned=1</script><!--<img src=x onerror='document.body.dataset.owned=1'>";
    let mut builder = Builder::default();
    let worker = builder.worker(hostile);
    let shard = builder.shard(hostile);
    builder.up(0, worker, hostile.to_owned());
    builder.owner(10, shard, Some((worker, hostile.to_owned())));
    builder.begin(20, worker, shard, BarKind::Processing, hostile.to_owned());
    builder.mark(30, MarkKind::Take, Some(worker), Some(shard), hostile.to_owned());
    let timeline = Timeline {
        title: hostile.to_owned(),
        subtitle: hostile.to_owned(),
        verdict: hostile.to_owned(),
        ..builder.finish(100)
    };
    let page = desk.write("hostile", &timeline);
    let state = desk.state(&page, "", Theme::Light);
    state.shows(&timeline, Theme::Light);
    assert_eq!(state.get("owned"), None, "{state:?}");
    assert_eq!((state.number("bars"), state.number("marks")), (2, 1));
}

#[test]
fn nothing_at_all_is_drawn_too() {
    let Some(desk) = Desk::new("nothing") else { return };
    let timeline = Builder::default().finish(0);
    let page = desk.write("nothing", &timeline);
    desk.state(&page, "", Theme::Light).shows(&timeline, Theme::Light);
}
