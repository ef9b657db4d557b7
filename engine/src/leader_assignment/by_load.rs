//! Each worker gets enough work to be as busy as the rest, by its report of its host or by the throughput of its
//! leases.
//!
//! Loads are ratios: 1 is the average of the workers that report the same metric. A worker with several metrics is as full as the
//! fullest of them says. A lease of the weight of one member's share of all throughput adds 1.

use super::by_count;
use super::measure::{Measure, Of, Reading, measures};
use super::{Candidate, Fleet, Move, Portion};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// How much above the average a worker must be, as a ratio, to give something: more than sums of fractions are off.
const MARGIN: f64 = 1e-9;
/// By how much a ratio may be off.
const ROUNDING: f64 = 1e-12;
/// Leases of less throughput than this on average, in millionths of KiB/s, are shared by number. So little keeps no worker busy, and changes
/// from report to report: KCL's leader moves leases to and fro for it, for ever.
const NOISE: u64 = 1_000_000;
/// A lease weighs at least the average divided by this number.
const LIGHTEST: u64 = 100;

/// When leases are moved, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// How far a worker must be from the average, in percent of the average, before leases are moved.
    pub rebalance_threshold_percent: u32,
    /// How much of what a worker has above the average is moved at once, in percent; more than 100 is 100.
    pub dampening_percent: u32,
    /// A worker without a small enough lease gives its smallest lease.
    pub allow_overshoot: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { rebalance_threshold_percent: 10, dampening_percent: 60, allow_overshoot: true }
    }
}

/// Places the available leases and, with `balance`, moves leases from workers above the average to workers below the
/// average.
///
/// `draw` gives a value for the index of a lease: a worker gives its leases in the order of these values. Of equally
/// full destinations, the destination with fewer leases comes first, then the destination with the least id. A lease
/// stays where it is if only its own owner has room. If leases have a throughput of less than 1 KiB/s on average, this
/// is [`by_count()`](super::by_count()).
pub fn by_load(
    candidates: &[Candidate], leases: &[Portion], options: &LoadOptions, balance: bool,
    mut draw: impl FnMut(usize) -> u64,
) -> Vec<Move> {
    let mut fleet = Fleet::new(candidates, leases);
    let throughputs = || leases.iter().map(|lease| lease.throughput);
    let Some(scale) = Scale::of(throughputs()) else {
        return by_count::share(&mut fleet, balance);
    };
    let weights = throughputs().map(|known| scale.weight(known)).collect();
    if fleet.members.is_empty() {
        return Vec::new();
    }
    let mut loads = Loads::new(fleet, weights);
    let mut moves = loads.place();
    if balance {
        moves.extend(loads.balance(options, &mut draw));
    }
    moves
}

/// The weights of leases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    average: u64,
    least: u64,
}

impl Scale {
    /// From the throughput of all leases.
    pub(super) fn of(throughputs: impl Iterator<Item = Option<u64>>) -> Option<Self> {
        let (mut sum, mut known) = (0, 0);
        for throughput in throughputs.flatten() {
            sum += u128::from(throughput);
            known += 1;
        }
        Self::new(sum, known)
    }

    /// From the sum of all known throughputs, and the number of leases with a known throughput. Absent if the average
    /// is less than [`NOISE`].
    pub(super) fn new(sum: u128, known: u128) -> Option<Self> {
        if sum < u128::from(NOISE) * known.max(1) {
            return None;
        }
        // The average of 64-bit values is one. Fractions of a millionth do not matter.
        let average = u64::try_from(sum / known).unwrap_or(u64::MAX);
        let least = (average / LIGHTEST).max(1);
        Some(Self { average, least })
    }

    /// The least that a lease weighs.
    pub(super) fn least(self) -> u64 {
        self.least
    }

    /// The weight of a lease: its throughput, or the average of the known throughputs.
    pub(super) fn weight(self, throughput: Option<u64>) -> u64 {
        throughput.unwrap_or(self.average).max(self.least)
    }
}

/// A member that may get leases, in the order in which members are offered leases: the least full first.
#[derive(Clone, Copy, Debug)]
struct Place {
    full: f64,
    leases: usize,
    member: usize,
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let full = self.full.total_cmp(&other.full);
        full.then(self.leases.cmp(&other.leases)).then(self.member.cmp(&other.member))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Place {}

/// How full a member is, and how a lease fills it.
#[derive(Clone, Copy, Debug)]
struct Room {
    full: f64,
    /// The weight that adds 1 to a ratio.
    unit: f64,
    /// How much may be added until a limit of it is reached.
    headroom: f64,
}

/// A member that gives leases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    member: usize,
    /// Its value, as a ratio, and the lowest allowed value.
    full: f64,
    goal: f64,
    /// The weight to give.
    take: f64,
    /// The measure is the measure of leases: a lease adds exactly its weight.
    of_leases: bool,
}

/// The members that give, by the measure with the most to give; the members that give most come first.
pub(super) fn sources(measures: &[Measure<'_>], assigned: &[u128], options: &LoadOptions) -> Vec<Source> {
    let mut chosen: (f64, Vec<Source>) = (0.0, Vec::new());
    for measure in measures {
        let sources = sources_by(measure, assigned, options);
        let sum = sources.iter().map(|source| source.take).sum();
        if chosen.1.is_empty() || sum > chosen.0 {
            chosen = (sum, sources);
        }
    }
    let (_, mut sources) = chosen;
    sources.sort_by(|a, b| b.take.total_cmp(&a.take).then(a.member.cmp(&b.member)));
    sources
}

/// The members that give by one measure.
fn sources_by(measure: &Measure<'_>, assigned: &[u128], options: &LoadOptions) -> Vec<Source> {
    let threshold = f64::from(options.rebalance_threshold_percent) / 100.0;
    let dampening = f64::from(options.dampening_percent.min(100)) / 100.0;
    let (upper, lower) = (1.0 + threshold, 1.0 - threshold);
    let ratio = |reading: &Reading| measure.ratio(reading.value);
    let above_limit = |reading: &Reading| reading.value > reading.limit;
    let readings = &measure.readings;
    let is_off = |reading: &Reading| ratio(reading) > upper || ratio(reading) < lower || above_limit(reading);
    if measure.average <= 0.0 || !readings.iter().any(is_off) {
        return Vec::new();
    }
    let gives = |reading: &&Reading| ratio(reading) >= upper || above_limit(reading);
    let mut giving: Vec<&Reading> = readings.iter().filter(gives).collect();
    if giving.is_empty() {
        // Of equal readings, the first: `max_by` alone would find the last.
        giving.extend(readings.iter().rev().max_by(|a, b| a.value.total_cmp(&b.value)));
    }
    let source = |reading: &Reading| {
        let full = ratio(reading);
        let goal = measure.ratio(reading.limit).min(1.0);
        let take = assigned[reading.member] as f64 * ((full - goal) / full) * dampening;
        Source { member: reading.member, full, goal, take, of_leases: measure.of == Of::Leases }
    };
    let sources = giving.into_iter().map(source);
    sources.filter(|source| source.full > source.goal + MARGIN).collect()
}

/// A fleet and the loads of its members.
struct Loads<'a> {
    fleet: Fleet<'a>,
    weights: Vec<u64>,
    /// The weight of the leases of each member, and the part of it placed in this run.
    assigned: Vec<u128>,
    placed: Vec<u128>,
    /// A member's share of all weight.
    target: f64,
    /// The members' reports, before any lease was placed.
    measures: Vec<Measure<'a>>,
}

impl<'a> Loads<'a> {
    fn new(fleet: Fleet<'a>, weights: Vec<u64>) -> Self {
        let mut assigned = vec![0; fleet.members.len()];
        for (lease, weight) in weights.iter().enumerate() {
            if let Some(owner) = fleet.owners[lease].filter(|_| !fleet.leases[lease].available) {
                assigned[owner] += u128::from(*weight);
            }
        }
        let all: u128 = weights.iter().copied().map(u128::from).sum();
        let carried: Vec<f64> = assigned.iter().map(|weight| *weight as f64).collect();
        let measures = measures(&fleet.members, &carried);
        Self {
            target: all as f64 / fleet.members.len() as f64,
            placed: vec![0; assigned.len()],
            fleet,
            weights,
            assigned,
            measures,
        }
    }

    /// Gives each available lease to the member that is the least full.
    fn place(&mut self) -> Vec<Move> {
        let mut full = vec![0.0_f64; self.fleet.members.len()];
        for measure in &self.measures {
            for reading in &measure.readings {
                let ratio = match measure.of {
                    Of::Leases => reading.value / self.target,
                    Of::Host(_) => measure.ratio(reading.value),
                };
                full[reading.member] = full[reading.member].max(ratio);
            }
        }
        let mut queue: BTreeSet<Place> = BTreeSet::new();
        for (member, full) in full.into_iter().enumerate() {
            self.open(&mut queue, member, full);
        }
        let mut moves = Vec::new();
        let available: Vec<usize> = self.fleet.available().collect();
        for lease in available {
            if queue.is_empty() {
                break;
            }
            let failed = self.fleet.owners[lease];
            let Some(place) = queue.iter().find(|place| Some(place.member) != failed).copied() else {
                continue;
            };
            queue.remove(&place);
            let weight = u128::from(self.weights[lease]);
            self.assigned[place.member] += weight;
            self.placed[place.member] += weight;
            self.fleet.members[place.member].leases += 1;
            self.open(&mut queue, place.member, place.full + weight as f64 / self.target);
            moves.push(self.fleet.to(lease, place.member));
        }
        moves
    }

    /// Queues a member if it has room.
    fn open(&self, queue: &mut BTreeSet<Place>, member: usize, full: f64) {
        debug_assert!(full.is_finite() && full >= 0.0, "a load is a number");
        let known = &self.fleet.members[member];
        if known.has_room() {
            queue.insert(Place { full, leases: known.leases, member });
        }
    }

    /// Moves leases from members that are too full.
    fn balance(&mut self, options: &LoadOptions, draw: &mut impl FnMut(usize) -> u64) -> Vec<Move> {
        self.count_in_what_was_placed();
        let sources = sources(&self.measures, &self.assigned, options);
        let mut rooms = self.rooms();
        let mut queue = BTreeSet::new();
        for (member, room) in rooms.iter().enumerate() {
            self.open(&mut queue, member, room.full);
        }
        let movable = self.fleet.movable();
        let mut moves = Vec::new();
        for source in sources {
            let picked = self.pick(&movable[source.member], source.take, options, draw);
            self.hand_out(source, &picked, &mut rooms, &mut queue, &mut moves);
        }
        moves
    }

    /// What was placed makes its workers busier: by as much of the average as it is of a member's share.
    fn count_in_what_was_placed(&mut self) {
        for measure in &mut self.measures {
            let average = measure.average;
            for Reading { member, value, .. } in &mut measure.readings {
                match measure.of {
                    Of::Leases => *value = self.assigned[*member] as f64,
                    Of::Host(_) => *value += self.placed[*member] as f64 / self.target * average,
                }
            }
            measure.weigh();
        }
    }

    /// How full each member is by the fullest of its measures.
    fn rooms(&self) -> Vec<Room> {
        let none = Room { full: 0.0, unit: self.target, headroom: f64::INFINITY };
        let mut rooms = vec![none; self.fleet.members.len()];
        for measure in &self.measures {
            for reading in &measure.readings {
                let room = &mut rooms[reading.member];
                room.full = room.full.max(measure.ratio(reading.value));
                if measure.average <= 0.0 {
                    continue;
                }
                if measure.of == Of::Leases {
                    room.unit = measure.average;
                }
                room.headroom = room.headroom.min(measure.ratio(reading.limit - reading.value));
            }
        }
        rooms
    }

    /// The leases given by a member for a weight of `take`, the lightest first.
    fn pick(
        &self, movable: &[usize], take: f64, options: &LoadOptions, draw: &mut impl FnMut(usize) -> u64,
    ) -> Vec<usize> {
        let mut drawn: Vec<(u64, usize)> = movable.iter().map(|lease| (draw(*lease), *lease)).collect();
        drawn.sort_unstable();
        let mut picked = Vec::new();
        let mut left = take;
        for (_, lease) in &drawn {
            let weight = self.weights[*lease] as f64;
            if left - weight > 0.0 {
                left -= weight;
                picked.push(*lease);
            }
        }
        if picked.is_empty() && options.allow_overshoot {
            let lightest = drawn.iter().min_by_key(|(_, lease)| self.weights[*lease]);
            picked.extend(lightest.map(|(_, lease)| *lease));
        }
        picked.sort_by_key(|lease| self.weights[*lease]);
        picked
    }

    /// Moves the leases of a source, the lightest first, to destinations that stay at the average and below their
    /// limits; or, where only leases are measured, to a destination below the average and then not above the source.
    ///
    /// A destination that refuses a lease refuses all heavier leases, so this source asks the destination only once.
    fn hand_out(
        &mut self, source: Source, picked: &[usize], rooms: &mut [Room], queue: &mut BTreeSet<Place>,
        moves: &mut Vec<Move>,
    ) {
        let mut refused = Vec::new();
        let mut full = source.full;
        for lease in picked {
            let weight = self.weights[*lease];
            // A source gets no given lease back in this run: its own place is not made emptier.
            while full > source.goal + MARGIN
                && let Some(place) = queue.pop_first()
            {
                let room = &mut rooms[place.member];
                let step = weight as f64 / room.unit;
                let comparable = source.of_leases && self.fleet.members[place.member].metrics.is_empty();
                let evens_out = comparable && room.full < 1.0 && room.full + step <= full - step + ROUNDING;
                let fits = room.full + step <= 1.0 + ROUNDING || evens_out;
                if !fits || step > room.headroom + ROUNDING || place.member == source.member {
                    refused.push(place);
                    continue;
                }
                room.full += step;
                room.headroom -= step;
                let now = room.full;
                self.fleet.members[place.member].leases += 1;
                self.open(queue, place.member, now);
                full -= weight as f64 / rooms[source.member].unit;
                moves.push(self.fleet.to(*lease, place.member));
                break;
            }
        }
        queue.extend(refused);
    }
}
