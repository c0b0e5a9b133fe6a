"""The values that the simulators send, as functions of the seconds since their start. A value with a wrong age, or from another device,
does not match the value of its time.
Sources: Sources/Peers (DriveCycle, ElectricCar, PetrolDrive, BoardRide, VESCRide, WearableSensor, ForecastReply, DemoBus)."""
import math

STEP = 0.1  # of a table, in seconds


class Round:
    """A periodic function: its minimum and maximum between two times."""

    def __init__(self, period, value):
        self.count = round(period / STEP)
        self.low, self.high = [], []
        for step in range(self.count):
            values = [value((step + part / 10) * STEP) for part in range(11)]
            self.low.append(min(values))
            self.high.append(max(values))

    def between(self, begin, end):
        first, last = math.floor(begin / STEP), math.floor(end / STEP)
        steps = {step % self.count for step in range(max(0, first), min(max(0, last), first + self.count) + 1)}
        return min(self.low[step] for step in steps), max(self.high[step] for step in steps)


def legs(table, smooth):
    """The speed profile of legs (seconds, final speed): its period and function."""
    period = sum(seconds for seconds, _ in table)

    def speed(seconds):
        rest, before = seconds % period, 0
        for length, goal in table:
            if rest < length:
                part = rest / length
                return before + (goal - before) * (part * part * (3 - 2 * part) if smooth else part)
            rest, before = rest - length, goal
        return 0

    return period, speed


DRIVE = ((1, 0), (9, 50), (20, 50), (8, 0), (5, 0), (14, 80), (25, 80), (9, 30), (10, 30), (18, 110), (35, 110), (12, 60), (12, 60),
         (13, 0), (4, 0), (3, -6), (4, -6), (2, 0), (6, 0))
RIDE = ((2, 0), (8, 16), (20, 18), (4, 10), (12, 18), (6, 0), (3, 0), (2, -2), (2, -2), (1, 0))
GEARS = ((22, 118), (42, 68), (66, 45), (90, 34), (105, 27), (math.inf, 23))


def engine(speed):
    """The speed of the petrol engine at a road speed."""
    turns = next(turns for limit, turns in GEARS if abs(speed) <= limit)
    return max(792 if speed else 780, abs(speed) * turns)


drive_period, drive_speed = legs(DRIVE, True)
ride_period, ride_speed = legs(RIDE, False)
car_speed = Round(drive_period, drive_speed)
engine_speed = Round(drive_period, lambda seconds: engine(drive_speed(seconds)))
def square(seconds):
    """The metres north of its start that the receiver has driven: a square of 1 km at 50 km/h."""
    side, part = divmod(seconds / 3.6 * 50 % 4000, 1000)
    return (part, 1000, 1000 - part, 0)[int(side)]


north = Round(288, square)
board_speed = Round(ride_period, lambda seconds: int(ride_speed(seconds)))


def driven(seconds, turns):
    """The position in the drive cycle after this many seconds: it stops while the key is not in `run`, and then restarts."""
    total, turns = 0.0, [("run", 0), *turns]
    if len(turns) == 1:
        return seconds
    for (position, since), (_, until) in zip(turns, [*turns[1:], ("", math.inf)]):
        if position == "run" and since <= seconds:
            total += min(seconds, until) - since
            if until <= seconds:
                total = math.ceil(total / drive_period) * drive_period
    return total


def within(value, low, high, slack=0.0):
    return None if low - slack <= value <= high + slack else f"between {low - slack:g} and {high + slack:g}"


def equal(value, wanted):
    return None if value == wanted else repr(wanted)


# Each gives None where a value is right or nobody knows, or what it should be. Begin and end are the seconds of the simulator's life
# between which it was sent.


def electric(turns, vin):
    def truth(name, value, begin, end):
        if name == "rpm":
            low, high = car_speed.between(begin, end)
            return within(value, low * turns, high * turns, 2)
        if name in ("speed", "speed-brakes", "wheel-speed-front-left"):
            low, high = car_speed.between(begin, end)
            return within(abs(value), 0 if low < 0 < high else min(abs(low), abs(high)), max(abs(low), abs(high)), 1)
        if name == "operating-time":
            return within(value - 2_301_462, math.floor(max(0, begin)), math.floor(max(0, end)))
        if name == "vin":
            return equal(value, vin)
        if name == "state-of-charge":
            return within(value, 5, 85)
        return None
    return truth


def petrol(name, value, begin, end):
    if name == "rpm":
        return within(value, *engine_speed.between(begin, end), 12)
    if name == "speed":
        low, high = car_speed.between(begin, end)
        return within(value, 0 if low < 0 < high else min(abs(low), abs(high)), max(abs(low), abs(high)), 1)
    if name == "vin":
        return equal(value, "WVWZZZ1KZAW000042")
    return None


def torq(name, value, begin, end):
    if name == "speed":
        low, high = board_speed.between(begin, end)
        return within(value, low * 1.609344, high * 1.609344, 0.06)
    if name == "battery":
        return within(value, 0, 100)
    return None


def vesc(name, value, begin, end):
    if name == "uptime":
        return within(value, math.floor(max(0, begin)), math.floor(max(0, end)))
    if name == "total-distance":
        return within(value, 1204, 1204 + max(0, end) * 0.01)
    if name == "firmware":
        return equal(value, "6.00")
    if name == "battery":
        return within(value, 5, 85)
    return None


def strap(name, value, begin, end):
    if name == "heart-rate":
        beats = []
        for moment in (begin, end, *(turn for turn in range(0, int(end) + 1, 300) if begin <= turn <= end)):
            part = max(0, moment) / 600 % 1
            beats.append(72 + 176 * min(part, 1 - part))
        return within(value, min(beats), max(beats), 3)
    return None


def foot(name, value, begin, end):
    if name == "speed":
        return within(value, 10.5, 10.6)
    if name == "cadence":
        return equal(value, 160)
    if name == "stride-length":
        return equal(value, 1.1)
    if name == "distance":
        return within(value, max(0, begin) / 0.375 * 1.1e-3, max(0, end) / 0.375 * 1.1e-3, 0.001)
    return None


def position(name, value, begin, end):
    if name == "latitude":
        low, high = north.between(begin, end)
        # Pages show five decimal places.
        return within((value - 63.43) * 111_320, low, high, 0.7)
    # The second receiver has no fix.
    if name == "receiver":
        return None if value in ("/dev/ttyUSB0", "/dev/ttyACM0") else "one of two"
    known = {"speed": 50, "fix": "3d", "satellites-used": 9, "satellites-seen": 12, "altitude": 123}
    return equal(value, known[name]) if name in known and value not in ("2d", "none") else None


def weather(name, value, begin, end):
    known = {"temperature": 9, "humidity": 43, "condition": "Partly cloudy", "uv-index": 4.85}
    return equal(value, known[name]) if name in known else None


def triangle(seconds):
    return 12 * (seconds if seconds < 10 else 20 - seconds)


bus_speed = Round(20, lambda seconds: triangle(seconds % 20))
coolant = Round(20, lambda seconds: 90 + math.floor(seconds % 20))
TYRES = {"pressure-front-left": 2.3, "pressure-front-right": 2.31, "pressure-rear-left": 2.32, "pressure-rear-right": 2.33,
         "temperature-front-left": 30}


def bus(name, value, begin, end):
    low, high = bus_speed.between(begin, end)
    if name == "engine-speed":
        return within(value, 800 + 30 * low, 800 + 30 * high, 1)
    if name == "throttle":
        return within(value, low / 2, high / 2, 1)
    if name == "vehicle-speed":
        return within(value, low, high, 0.6)
    if name == "gear":
        gears = {"park": low < 2, "drive 2": low < 61 and high > 0, "drive 5": high > 59}
        return None if gears.get(value) else f"one of {[gear for gear, may_be in gears.items() if may_be]}"
    if name == "coolant-temperature":
        return within(value, *coolant.between(begin, end))
    return equal(value, TYRES[name]) if name in TYRES else None


def nothing(name, value, begin, end):
    return None


def values_agree(readings):
    """The inconsistencies between values of one device with the same time."""
    def pick(*names):
        found = [readings.get(name) for name in names]
        return found if all(found) and len({one["time"] for one in found}) == 1 else None

    def number(reading):
        return next(iter(reading["value"].values()))

    if all_three := pick("battery-power", "battery-voltage", "battery-current"):
        power, voltage, current = map(number, all_three)
        scale = 1000 if all_three[0]["unit"] == "kW" else 1
        if abs(power * scale - voltage * current) > 0.05 * (abs(voltage) + abs(current)) + 6:
            yield f"battery-power {power} is not {voltage} V times {current} A"
    if both := pick("erpm", "rpm"):
        erpm, turns = map(number, both)
        if abs(erpm / 7 - turns) > 1:
            yield f"rpm {turns} is not a seventh of erpm {erpm}"
    if both := pick("erpm", "speed"):
        erpm, speed = map(number, both)
        wanted = erpm / 7 / 2.25 / 60 * math.pi * 0.085 * 3.6
        if abs(wanted - speed) > 0.2:
            yield f"speed {speed} does not belong to erpm {erpm} ({wanted:.1f})"
    if both := pick("cell-voltage-min", "cell-voltage-max"):
        low, high = map(number, both)
        if low > high:
            yield f"the least cell voltage {low} is above the most, {high}"
