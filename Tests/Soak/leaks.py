"""What a process uses: anonymous memory, descriptors and threads, which must not grow."""
import statistics
from contextlib import suppress

from house import anonymous, descriptors, threads


class Usage:
    """The samples of one process: the time, anonymous memory in kB, and the numbers of descriptors and threads."""

    def __init__(self):
        self.samples = []

    def sample(self, at, pid):
        with suppress(OSError):
            self.samples.append((at, anonymous(pid), sum(descriptors(pid).values()), threads(pid)))

    def judge(self, begin, end, settled=0):
        """The figures between two times, and a description of the growth of memory, if there is any: the median of the last fifth may
        exceed that of the first one by 10 % plus 1 MB. Growth up to `settled` (kB) is not a leak, because caches fill."""
        fifth = (end - begin) / 5
        early = [kB for at, kB, _, _ in self.samples if begin <= at <= begin + fifth]
        late = [kB for at, kB, _, _ in self.samples if end - fifth <= at <= end]
        early, late = statistics.median(early), statistics.median(late)
        figures = {"kB after the warm-up": early, "kB at the end": late, "most kB": max(kB for _, kB, _, _ in self.samples),
                   "most threads": max(count for *_, count in self.samples), "most descriptors": max(files for _, _, files, _ in self.samples)}
        if late > max(early * 1.1 + 1024, settled):
            return figures, f"anonymous memory has grown from {early:.0f} kB after the warm-up to {late:.0f} kB"
        return figures, None
