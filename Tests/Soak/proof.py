"""Checks recorded values: whether each was true at its time, whether none is valid when there was none, and whether none is missing."""
import bisect, collections

import truth
from house import now

# What the simulators have a known value of, besides what tells that a device is well.
CHECKED = {"speed", "speed-brakes", "wheel-speed-front-left", "operating-time", "vin", "state-of-charge", "battery", "uptime", "total-distance",
           "firmware", "distance", "altitude", "heart-rate", *truth.TYRES}
REPORTED = 3  # wrong values of one kind


def overlap(some, others):
    """The times in both of two lists of spans."""
    found = [(max(a, c), min(b, d)) for a, b in some for c, d in others]
    return [(begin, end) for begin, end in found if end > begin]


class Proof:
    """The values that one service recorded."""

    def __init__(self, service, delay, what):
        # The delay is how much later than the daemon the service notices that there is a value, or that there is none.
        self.service, self.soak, self.house = service, service.soak, service.house
        self.delay, self.what = delay, what
        self.series = collections.defaultdict(list)
        self.seconds = 0.0
        self.found = collections.Counter()  # what was wrong, by value and kind

    @staticmethod
    def names(device):
        return CHECKED | set(device.lively)

    def add(self, device, name, at, value):
        """Adds a value, or an absence (None), with its time on this script's clock."""
        self.series[device, name].append((at, value))

    def wrong(self, device, name, at, kind, words):
        self.found[device.name, name, kind] += 1
        if self.found[device.name, name, kind] <= REPORTED:
            self.service.wrong(f"{device.name}.{name} {words} ({self.soak.clock(at)}, {now() - at:.0f} s ago)")
        else:
            self.service.count_wrong += 1

    def prove(self, device, spans):
        """Checks what was added of a device. Everything must be there in the spans in which the device was well, too."""
        calm = [(begin + 3, (end or now()) - 1.5) for begin, end in device.calm]
        spans = overlap(calm, spans)
        names = [name for owner, name in self.series if owner == device.name]
        for name in names:
            samples = sorted(self.series.pop((device.name, name)), key=lambda sample: sample[0])
            self.prove_values(device, name, samples)
            if name in device.lively:
                self.prove_presence(device, name, [at for at, value in samples if value is not None], spans)
        if device.lively:
            self.seconds += sum(end - begin for begin, end in spans)
            for name in set(device.lively) - set(names):
                if spans:
                    self.wrong(device, name, spans[0][0], "missing", "is not recorded at all")

    def prove_values(self, device, name, samples):
        lifetime = device.lively.get(name)
        # A reader that was stopped allows another second, in which the daemon may have confirmed the value.
        limit = (lifetime or 0) + device.declared + 1.3 + self.delay
        for index, (at, value) in enumerate(samples):
            if value is None:
                continue
            self.service.checked[self.what] += 1
            if words := device.judge_at(name, value, at, self.house.lag_between(at - 3, at + 2)):
                self.wrong(device, name, at, "untrue", f"{value} {words}")
            if lifetime and index + 1 < len(samples):
                until = samples[index + 1][0]
                if until - at > limit and until - at > limit + 2 * self.house.lag_between(at, until):
                    self.wrong(device, name, at, "old", f"{value} is recorded as valid for {until - at:.1f} s, and is good for {lifetime} s")

    def prove_presence(self, device, name, times, spans):
        limit = max(1, device.lively[name]) + 1.5 + self.delay
        for begin, end in spans:
            inside = [begin, *times[bisect.bisect_left(times, begin):bisect.bisect_right(times, end)], end]
            for before, after in zip(inside, inside[1:]):
                if after - before > limit and after - before > limit + 2 * self.house.lag_between(before, after):
                    self.wrong(device, name, before, "missing", f"has no value for {after - before:.1f} s, though the device and the service were well")
