#!/usr/bin/env python3
"""Tests vehicled-mqtt with a real Home Assistant: the daemon with a simulated device of each kind, mosquitto, and Home Assistant, in a network
of their own (home_assistant.py). Prints one line per check; the other checks still run after a failure."""
import argparse, collections, datetime, fnmatch, json, os, re, shutil, signal, subprocess, sys, tempfile, time, traceback
from pathlib import Path
from typing import NamedTuple

from home_assistant import TREE, HomeAssistant, Program, in_tree, install, isolate, start_broker, wait

BUS = "unix:path={folder}/bus"
# The section of each device, and the arguments of its simulator. The first one with a Bluetooth bus provides the mock BlueZ.
DEVICES = {
    "ev": ('kind = "obd", link = "tcp:127.0.0.1:7001", allow-raw = true', "obd --on tcp:127.0.0.1:7001"),
    "petrol": ('kind = "obd", link = "tcp:127.0.0.1:7002"', "obd --on tcp:127.0.0.1:7002 --car petrol"),
    "torq": ('kind = "longboard", link = "tcp:127.0.0.1:7003"', "longboard --on tcp:127.0.0.1:7003"),
    "board": ('kind = "longboard", protocol = "vesc", link = "tcp:127.0.0.1:7004", allow-motion = true', "vesc --on tcp:127.0.0.1:7004"),
    "car": ('kind = "rc-car", link = "tcp:127.0.0.1:7010", control-users = ["nobody"]', "rc-car --on tcp:127.0.0.1:7010 --restart 0.5 -v"),
    "gps": ('kind = "position", link = "tcp:127.0.0.1:7005"', "gpsd --on tcp:127.0.0.1:7005"),
    "weather": ('kind = "weather", url = "http://127.0.0.1:7006", latitude = 52.5, longitude = 13.4, proxy = ""', "weather --on tcp:127.0.0.1:7006"),
    "toy": ('kind = "toy", server = "http://127.0.0.1:7007", insecure-http = true, proxy = ""', "trivia --on tcp:127.0.0.1:7007"),
    "mirror": ('kind = "mirror", link = "ble:ESP32-BLE-Server", key-file = "{folder}/key", iv-file = "{folder}/iv", username = "Ada", '
               'health = ["phone.steps"], control-users = ["nobody"]', f"mirror --on ble:{BUS} --key-file {{folder}}/key --iv-file {{folder}}/iv"),
    "strap": ('kind = "heart-rate", link = "ble:Polar*"', f"heart-rate --on ble:{BUS}"),
    "foot": ('kind = "foot-pod", link = "ble:Stryd*"', f"foot-pod --on ble:{BUS}"),
    "phone": ('kind = "health"', None)}
SIGNAL = 'signal.test = { request = "220101", header = "7E4", value = "E / 2", unit = "%", rank = 2 }'  # a property of the electric car
CONNECTED = {"polling", "live", "ready", "connected", "sending"}  # the states of a device with complete values; the toy is logged-out
PRIVATE = ("position", "health", "heart-rate", "foot-pod")  # the kinds that are published only on request
# And values of other kinds.
PERSONAL = ("*.vin", "*.last-bad-reply", "*.web-page", "*.sent-heart-rate", "*.sent-active-energy", "*.sent-steps", "*.sent-distance")
# The configuration of the bridge. The daemon does not allow its user to control the weather.
KEYS = {"broker": "mqtt://127.0.0.1", "host": "pi", "interval": 1, "refresh": 10, "publish": ["gps", "strap", "foot"], "exclude": [],
        "control": ["mirror.led", "mirror.health", "car.video-quality", "car.stop", "weather.refresh"]}
EXPIRY, WILL_DELAY = 3 * KEYS["refresh"], 30  # seconds
NEVER = ("dtc-clear", "query")  # actions that have no entity
# The units that Home Assistant shows in place of those of the daemon, with the factor of the conversion.
CONVERSIONS = {("kPa", "hPa"): 10, ("bytes", "B"): 1, ("kWh/100 km", "kWh/100km"): 1}
WARNINGS = re.compile(r"(?:WARNING|ERROR|CRITICAL) \(\w+\) (\[homeassistant\.(?:components\.(?:mqtt|sensor|number|binary_sensor|switch|select|button)"
                      r"|core|helpers|util)\b.*)")
# Those about the broker when it is restarted, and about the removal of a device, which Home Assistant repeats itself.
EXPECTED = re.compile("Disconnected from MQTT|Failed to connect to MQTT|Error returned from MQTT|No device components to cleanup")
# Runs in the tree: compares payloads with the tables of Home Assistant. Prints the violations, and then the number of combinations.
TABLES = """
import json, sys
from homeassistant.components.binary_sensor import BinarySensorDeviceClass
from homeassistant.components.number import const as number
from homeassistant.components.sensor import const as sensor
classes = {"sensor": sensor.SensorDeviceClass, "number": number.NumberDeviceClass, "binary_sensor": BinarySensorDeviceClass}
units = {"sensor": sensor.DEVICE_CLASS_UNITS, "number": number.DEVICE_CLASS_UNITS}
combinations = set()
for payload in map(json.loads, open(sys.argv[1])):
    for name, entity in payload["cmps"].items():
        platform, kind, state, unit = row = tuple(entity.get(key) for key in ("p", "dev_cla", "stat_cla", "unit_of_meas"))
        combinations.add(row)
        states = sensor.DEVICE_CLASS_STATE_CLASSES.get(kind, set(sensor.SensorStateClass)) if platform == "sensor" else set()
        if (kind and kind not in set(classes.get(platform, ())) or kind in units.get(platform, {}) and unit not in units[platform][kind]
                or state and (state not in states or unit not in sensor.STATE_CLASS_UNITS.get(state, {unit}))
                or kind == "enum" and (not entity.get("ops") or unit or state)):
            print(f"{payload['dev']['mdl']}.{name}: invalid {platform} of class {kind}, state class {state}, unit {unit}")
print(len(combinations))
"""
failures, begun = [], time.monotonic()


def check(what, problems):
    """Reports a check, which has passed if there are no problems."""
    problems = [problem[:300] for problem in problems]
    print("\n       ".join([f"{'FAIL' if problems else 'ok  '} {time.monotonic() - begun:6.1f} s  {what}", *problems[:12],
                            *([f"and {len(problems) - 12} more"] if len(problems) > 12 else [])]), flush=True)
    failures.extend([what] if problems else [])


def unless(condition, problem):
    return [] if condition else [str(problem)]


def matches(patterns, device, name):
    return any(fnmatch.fnmatch(f"{device}.{name}", one if "." in one else f"{one}.*") for one in patterns)


class Entity(NamedTuple):
    """The enabled entity of a property."""
    reference: str
    id: str
    unit: str
    is_fresh: bool
    resolution: float  # the smallest change that is published

    def disagreement(self, state, readings):
        """How its state differs from the readings of the last seconds, or None."""
        text, reason, unit = state["state"], state["attributes"].get("reason"), state["attributes"].get("unit_of_measurement")
        values = [one["value"] for one in readings if one.get("value") is not None]
        if readings[-1].get("value") is None:
            is_equal, values = text == "unknown" and reason == readings[-1].get("reason"), [f"none, reason: {readings[-1].get('reason')}"]
        elif isinstance(values[0], (int, float)) and not isinstance(values[0], bool):
            # The state may be two seconds old, and may differ from the value of that time by the resolution and half of it by rounding.
            factor = CONVERSIONS.get((self.unit, unit), 1)
            low, high = ((extreme(values) + margin * self.resolution) * factor for extreme, margin in ((min, -1.5), (max, 1.5)))
            is_equal, values = re.fullmatch(r"-?[\d.]+(e-?\d+)?", text) and low - 1e-9 <= float(text) <= high + 1e-9, [min(values), max(values)]
        else:
            values = [("on" if one else "off") if isinstance(one, bool) else ",".join(one) if isinstance(one, list) else one for one in values]
            is_equal = text in values
        return None if is_equal else f"is {text}, reason: {reason}; vehiclectl: {values[0]}" + (f" to {values[-1]}" if len(values) > 1 else "")


class Rig:
    """The programs under test, with the simulators and Home Assistant."""

    def __init__(self, programs, tree, folder):
        self.programs, self.tree, self.folder, self.simulators, self.known, self.checked = programs, tree, folder, {}, set(), 0
        folder.chmod(0o755)
        for name, text in (("key", "ascii:0123456789ABCDEF"), ("iv", "ascii:FEDCBA9876543210")):
            (folder / name).write_text(text)
            (folder / name).chmod(0o600)
        # The bridge runs as another user, who may not be able to enter the directory of the programs and of their library.
        shutil.copytree(programs.parent / "lib", folder / "lib")
        (folder / "bin").mkdir()
        shutil.copy(programs / "vehicled-mqtt", folder / "bin")
        (folder / "queue").mkdir()
        shutil.chown(folder / "queue", "nobody")
        self.bus = Program(folder / "bus.log", "dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={BUS.format(folder=folder)}")
        wait((folder / "bus").exists)
        for device in DEVICES:
            self.simulate(device)
        self.configure()
        self.start_daemon()
        self.broker, self.home = start_broker(folder), HomeAssistant(tree, folder)
        self.home.start()
        check("all simulated devices are connected", unless(wait(self.is_complete, 120), self.states()))
        self.start_bridge()

    def simulate(self, device, *more):
        if arguments := DEVICES[device][1]:
            command = [self.programs / "vehiclesim", *arguments.format(folder=self.folder).split(), *more]
            simulator = self.simulators[device] = Program(self.folder / f"{device}.log", *command)
            wait(lambda: simulator.output)

    def configure(self, without=(), ev=""):
        """Writes the configuration of the daemon, with these keys added to the device ev."""
        sections = "".join(
            f"{device} = {{ {section}{ev if device == 'ev' else ''} }}\n" for device, (section, _) in DEVICES.items() if device not in without)
        (self.folder / "vehicled.toml").write_text(
            f'control.observe-users = ["nobody"]\n[device]\n{sections.replace("{folder}", str(self.folder))}')

    def start_daemon(self):
        self.daemon = Program(
            self.folder / "vehicled.log", self.programs / "vehicled", "--config", self.folder / "vehicled.toml", "--socket", self.folder / "socket",
            "--state", self.folder / "state", env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": BUS.format(folder=self.folder)})

    def start_bridge(self, user="nobody", **keys):
        text = "[mqtt]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in {**KEYS, **keys}.items())
        (self.folder / "mqtt.toml").write_text(text)
        self.bridge = Program(
            self.folder / "vehicled-mqtt.log", self.folder / "bin/vehicled-mqtt", "--config", self.folder / "mqtt.toml", "--daemon",
            self.folder / "socket", "--state", self.folder / "queue", user=user, extra_groups=[])

    def close(self):
        for program in (self.home.program, self.bridge, self.broker, self.daemon, *self.simulators.values(), self.bus):
            program.end()

    def ctl(self, *arguments):
        """The output of vehiclectl as JSON."""
        command = [self.programs / "vehiclectl", "--socket", self.folder / "socket", "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        return json.loads(done.stdout or "{}")

    def states(self):
        return {device["name"]: device["state"] for device in self.ctl("status").get("devices", [])}

    def is_complete(self, *devices):
        states = self.states()
        return all(states.get(device) in CONNECTED | {"logged-out"} for device in devices or DEVICES)

    def readings(self):
        return {f"{one['device']}.{one['property']}": one for one in self.ctl("get", *self.states()).get("readings", [])}

    def messages(self, topic):
        """The retained messages on a topic filter, by topic."""
        done = subprocess.run(["mosquitto_sub", "-t", topic, "-v", "--retained-only", "-W", "2"], capture_output=True, text=True)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    def payloads(self):
        return [json.loads(text) for text in self.messages("homeassistant/device/+/config").values()]

    def expected(self, control, publish, exclude):
        """Whether each entity that there should be is enabled, by domain and unique ID."""
        expected = {}
        for schema in self.ctl("describe")["schemas"]:
            device, unique = schema["device"], f"vehicled_pi_{schema['device']}_"
            properties = [one for one in schema["properties"] if not matches(exclude, device, one["name"])
                          and (matches(publish, device, one["name"]) or schema["kind"] not in PRIVATE and not matches(PERSONAL, device, one["name"]))]
            if properties:
                expected |= {("binary_sensor", f"{unique}link"): True, ("sensor", f"{unique}state"): True}
            for one in properties:
                is_set = one["writable"] and not one["motion"] and matches(control, device, one["name"])
                has_range = one["type"] in ("int", "float") and None not in (one.get("minimum"), one.get("maximum"))
                domain = is_set and ("switch" if one["type"] == "bool" else "number" if has_range else one.get("choices") and "select")
                expected[domain or ("binary_sensor" if one["type"] == "bool" else "sensor"), unique + one["name"]] = (
                    one.get("rank", 2) <= 2 and one.get("group") not in ("emissions", "statistics", "cells"))
            expected |= {("button", f"{unique}do_{one['name']}"): True for one in schema["actions"] if not one["motion"] and one["name"] not in NEVER
                         and matches(control, device, one["name"]) and all(argument["optional"] for argument in one["arguments"])}
        return expected

    def check_entities(self, what, **keys):
        """Checks that Home Assistant has exactly the expected entities, and logs no warnings."""
        expected = self.expected(**{key: keys.get(key, KEYS[key]) for key in ("control", "publish", "exclude")})
        # Home Assistant does not remove a disabled entity that is no longer announced.
        registered = lambda: {key: entry["disabled_by"] is None for key, entry in self.home.registry().items()
                              if key in expected or key not in self.known or entry["disabled_by"] is None}
        wait(lambda: registered() == expected, 30, 1)
        found, word = registered(), {True: "enabled", False: "disabled", None: "absent"}
        check(f"{what}: {len(expected)} entities, {sum(expected.values())} of them enabled", sorted(
            f"{' '.join(key).replace('vehicled_pi_', '')} is {word[found.get(key)]}, not {word[expected.get(key)]}"
            for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)))
        self.known |= expected.keys()
        self.check_warnings(what)

    def check_warnings(self, what):
        """Checks the log of Home Assistant since the last check."""
        log, begin = self.home.log.read_text(), self.checked
        check(f"{what}: Home Assistant logs no warnings", sorted({line for line in WARNINGS.findall(log[begin:]) if not EXPECTED.search(line)}))
        self.checked = len(log)

    def entities(self, *devices):
        """The enabled entities of the properties of these devices, or of all."""
        ids = {key[1]: entry["entity_id"] for key, entry in self.home.registry().items() if entry["disabled_by"] is None}
        digits = {entity["uniq_id"]: entity.get("sug_dsp_prc") for payload in self.payloads()
                  for entity in payload["cmps"].values() if "uniq_id" in entity}
        return [Entity(f"{schema['device']}.{one['name']}", ids[unique], one.get("unit"), not one.get("retained"),
                       0 if digits.get(unique) is None else 10.0 ** -digits[unique])
                for schema in self.ctl("describe")["schemas"] if schema["device"] in (devices or DEVICES) for one in schema["properties"]
                if (unique := f"vehicled_pi_{schema['device']}_{one['name']}") in ids]

    def id(self, unique, domain=None):
        return next(entry["entity_id"] for key, entry in self.home.registry().items() if key in ((domain or key[0], f"vehicled_pi_{unique}"),))

    def state(self, unique, domain=None):
        return self.home.states()[self.id(unique, domain)]["state"]

    def check_values(self, what, entities, seconds=30):
        """Checks that the values of all entities agree with those of the daemon, each at some time."""
        window, problems, pending, end = collections.deque(maxlen=12), {}, entities, time.monotonic() + seconds
        while pending and time.monotonic() < end:
            window.append(self.readings())
            states = self.home.states()
            for one in pending:
                readings = [readings[one.reference] for readings in window if one.reference in readings]
                problems[one] = one.disagreement(states[one.id], readings) if readings and one.id in states else "does not exist"
            pending = [one for one in pending if problems[one]]
            time.sleep(0.3)
        check(f"{what}: {len(entities)} values agree with vehiclectl",
              [f"{one.reference} {problems[one]}" for one in pending] + unless(entities, "none"))

    def check_unavailable(self, what, entities, seconds=30):
        def others():
            states = self.home.states()
            return [f"{one.reference} is {states[one.id]['state']}" for one in entities if states[one.id]["state"] != "unavailable"]

        wait(lambda: not others(), seconds)
        check(f"{what}: {len(entities)} values are unavailable", others() + unless(entities, "none"))

    def is_shown(self, states, one):
        return one.id in states and states[one.id]["state"] not in ("unavailable", "unknown")

    def retained(self, *devices):
        """The states of the entities whose value keeps its meaning without the vehicle."""
        states = self.home.states()
        return {one: states[one.id]["state"] for one in self.entities(*devices) if not one.is_fresh and self.is_shown(states, one)}

    def check_retained(self, what, before):
        """Checks that these states are as before, with the time of the measurement."""
        states, now = self.home.states(), datetime.datetime.now(datetime.timezone.utc)

        def is_kept(one, text, state, measured):
            # Meanwhile, an odometer may have advanced, and the charge of a battery changed.
            least = {"km": 0, "%": -2}.get(one.unit)
            is_equal = state == text or least is not None and self.is_shown(states, one) and least <= float(state) - float(text) < 2
            return is_equal and measured and 0 <= (now - datetime.datetime.fromisoformat(measured)).total_seconds() < 3600

        check(f"{what}: {len(before)} retained values stay, with their time", [
            f"{one.reference} is {state}, was {text}; time: {measured}" for one, text in before.items()
            for state, measured in [(states[one.id]["state"], states[one.id]["attributes"].get("time"))] if not is_kept(one, text, state, measured)])


def test_entities(rig):
    """All entities appear, and nothing else; their values agree with those of the daemon."""
    what = "every published property has an entity"
    rig.check_entities(what)
    states, entities = rig.home.states(), rig.entities()
    check("exactly the enabled entities have a state", [
        f"{entry['entity_id']}: disabled by {entry['disabled_by']}" for entry in rig.home.registry().values()
        if (entry["entity_id"] in states) != (entry["disabled_by"] is None)])
    check("units agree with vehiclectl", [
        f"{one.reference} is in {shown}, vehiclectl: {one.unit}" for one in entities
        if (shown := states[one.id]["attributes"].get("unit_of_measurement")) != one.unit and (one.unit, shown) not in CONVERSIONS])
    rig.check_values("at first", entities)
    time.sleep(EXPIRY + 5)
    rig.check_values("after the time of expiry", entities, 10)


def test_link(rig):
    """Without the cars, fresh values are unavailable, and retained ones stay."""
    what, cars, before = "the link is down", ("ev", "petrol"), rig.retained("ev", "petrol")
    check("state of charge and odometer are retained", {"ev.state-of-charge", "ev.odometer"} - {one.reference for one in before})
    for car in cars:
        rig.simulators[car].end(signal.SIGKILL)
    rig.check_unavailable(what, [one for one in rig.entities(*cars) if one.is_fresh])
    rig.check_retained(what, before)
    check(f"{what}: the entity of the link is off", [car for car in cars if rig.state(f"{car}_link") != "off"])
    rig.check_values(f"{what}: other devices", rig.entities("torq", "board"))
    for car in cars:
        rig.simulate(car)
    wait(lambda: rig.is_complete(*cars), 90)
    rig.check_values("the link is up again", rig.entities(*cars))


def test_daemon(rig):
    """Without the daemon, fresh values are unavailable, and retained ones stay."""
    what, before, entities = "the daemon was killed", rig.retained("ev", "petrol"), rig.entities()
    fresh = [one for one in entities if one.is_fresh]
    rig.daemon.end(signal.SIGKILL)
    rig.check_unavailable(what, fresh)
    rig.check_retained(what, before)
    attributes = rig.messages("vehicled/+/+/attributes")
    check(f"{what}: the attributes at the broker give the reason", [
        f"{topic}: {attributes.get(topic)}" for topic in [f"vehicled/{one.reference.replace('.', '/')}/attributes" for one in fresh]
        if "vehicled is not running" not in attributes.get(topic, "")])
    check(f"{what}: no device is shown as connected", [
        f"{device} is {state}" for device in DEVICES if device != "phone" and (state := rig.state(f"{device}_state")) in CONNECTED])
    rig.start_daemon()
    wait(rig.is_complete, 90)
    rig.check_values("the daemon runs again", entities)
    # As at a boot at which the daemon does not start.
    rig.bridge.end()
    rig.daemon.end()
    rig.start_bridge()
    wait(lambda: "connected to mqtt" in rig.bridge.output)
    time.sleep(3)
    rig.check_unavailable("the bridge runs before the daemon", fresh, 0)
    rig.start_daemon()
    wait(rig.is_complete, 90)
    rig.check_values("the daemon runs after the bridge", entities)


def test_bridge(rig):
    """After the bridge was killed, nothing is shown as current."""
    rig.bridge.end(signal.SIGKILL)
    rig.check_unavailable("the bridge was killed, after the will delay", rig.entities(), WILL_DELAY + 15)
    rig.start_bridge()
    rig.check_values("the bridge runs again", rig.entities())


def test_commands(rig):
    """Commands that both sides allow are carried out."""
    use = lambda service, unique, **data: rig.home.call(f"/api/services/{service}", {"entity_id": rig.id(unique, service.split("/")[0]), **data})
    for service, unique, data, wanted, state in (
            ("number/set_value", "mirror_led", {"value": 37}, 37, "37"), ("switch/turn_on", "mirror_health", {}, True, "on"),
            ("switch/turn_off", "mirror_health", {}, False, "off"), ("select/select_option", "car_video-quality", {"option": "low"}, "low", "low"),
            ("select/select_option", "car_video-quality", {"option": "high"}, "high", "high")):
        use(service, unique, **data)
        seen = lambda: (rig.readings()[unique.replace("_", ".")].get("value"), rig.state(unique, service.split("/")[0]))
        wait(lambda: seen() == (wanted, state), 15)
        check(f"{service} {unique} {data or ''}", unless(seen() == (wanted, state), f"vehiclectl and Home Assistant: {seen()}"))
    stops = lambda: rig.simulators["car"].output.count("Stop#$#")
    before = stops()
    use("button/press", "car_do_stop")
    check("button/press car_do_stop", unless(wait(lambda: stops() > before), "the car has received no Stop"))
    use("button/press", "weather_do_refresh")
    check("button/press weather_do_refresh is rejected by the daemon", unless(
        wait(lambda: "weather.refresh: command failed: permission denied" in rig.bridge.output), rig.bridge.output[-300:]))
    rig.check_warnings("commands")


def test_changes(rig):
    """Entities follow the configuration of daemon and bridge. With everything allowed and published, none of them moves a vehicle, sends raw
    queries or clears trouble codes, and their classes and units are valid."""
    def reload(what, **keys):
        rig.configure(**keys)
        rig.ctl("reload")
        wait(lambda: rig.is_complete("ev"), 60)
        rig.check_entities(what)

    reload("a signal was added", ev=f", {SIGNAL}")
    reload("the signal and a device were removed", without=["gps"])
    rig.bridge.end()
    rig.configure(without=["foot"])
    rig.ctl("reload")
    rig.start_bridge()
    rig.check_entities("a device was added, and one removed while the bridge did not run")
    rig.configure()
    rig.ctl("reload")
    payloads, keys = rig.payloads(), {"control": ["*"], "publish": ["*"], "exclude": ["ev.speed"]}
    rig.bridge.end()
    rig.start_bridge("root", **keys)
    wait(lambda: len(rig.payloads()) == len(DEVICES))
    rig.check_entities("control, publish and exclude have changed", **keys)
    payloads += rig.payloads()
    never = {f"{schema['device']}/{one['name']}/{verb}" for schema in rig.ctl("describe")["schemas"]
             for verb, list in (("set", "properties"), ("do", "actions")) for one in schema[list] if one["motion"] or one["name"] in NEVER}
    commands = {f"{payload['dev']['name']}/{'/'.join(entity['cmd_t'].split('/')[-2:])}"
                for payload in payloads for entity in payload["cmps"].values() if "cmd_t" in entity}
    check(f"none of {len(never)} motion commands, raw queries and clearing is among {len(commands)} commands", sorted(never & commands)
          + unless({"board/target-current/set", "ev/query/do"} <= never and "mirror/led/set" in commands, f"no test: {never}, {commands}"))
    (rig.folder / "payloads").write_text("".join(json.dumps(payload) + "\n" for payload in payloads))
    (rig.folder / "tables.py").write_text(TABLES)
    command = in_tree(rig.tree, "/srv/ha/bin/python", rig.folder / "tables.py", rig.folder / "payloads")
    *problems, count = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.splitlines() or [""]
    check(f"{count} combinations of class and unit of {len({payload['dev']['mdl'] for payload in payloads})} kinds are valid",
          problems + unless(count.isdigit(), count))


def test_restarts(rig):
    """After restarts, no value of a car that is off is shown."""
    for car in ("ev", "petrol"):
        rig.simulators[car].end(signal.SIGKILL)
    rig.simulate("petrol", "--key", "off@0")
    wait(lambda: rig.states()["petrol"] in ("car-asleep", "car-silent") and rig.states()["ev"] == "waiting", 120)
    time.sleep(5)
    absent = lambda: {name for name, reading in rig.readings().items() if reading.get("value") is None}
    others, shown, missing = rig.entities("torq", "board", "weather", "mirror"), set(), absent()
    off = [one for one in rig.entities("ev", "petrol") if one.is_fresh and one.reference in missing]

    def sample():
        states, missing = rig.home.states(), absent()
        shown.update(f"{one.reference} is {states[one.id]['state']}" for one in off if one.reference in missing and rig.is_shown(states, one))

    def check_shown(what):
        wait(sample, 15)  # until after the random delay at which the bridge publishes everything again
        check(f"{what}: {len(off)} values of cars that are off are not shown", sorted(shown) + unless(len(off) > 20, rig.states()))
        rig.check_values(what, others)
        rig.check_warnings(what)
        shown.clear()

    check_shown("the cars are off")
    rig.home.program.end()
    rig.home.start(during=sample)
    check_shown("Home Assistant was restarted")
    rig.broker.end(signal.SIGKILL)
    time.sleep(2)
    rig.broker = start_broker(rig.folder)
    check_shown("the broker was restarted")


TESTS = {one.__name__.removeprefix("test_"): one for one in (
    test_entities, test_link, test_daemon, test_bridge, test_commands, test_changes, test_restarts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=TREE.parent / "linked/bin", help="the directory of the programs (default: .build/linked/bin)")
    parser.add_argument("--tree", type=Path, default=TREE, help="the directory of Home Assistant (default: .build/home-assistant)")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"run only these parts: {', '.join(TESTS)}")
    options = parser.parse_args()
    install(options.tree)
    isolate()
    folder = Path(tempfile.mkdtemp(prefix="vehicled-home-assistant-", dir="/tmp"))
    rig = Rig(options.programs.resolve(), options.tree.resolve(), folder)
    # Without any entities, this part shows the reason in the log of Home Assistant.
    for part in options.parts or TESTS if wait(rig.home.registry) else ["entities"]:
        try:
            TESTS[part](rig)
        except Exception:
            check(f"part {part} completes", traceback.format_exc(limit=-3).strip().splitlines())
    rig.close()
    if not failures:
        shutil.rmtree(folder)
    print("\n  ".join([f"{len(failures)} failures, logs in {folder}:", *failures]) if failures else "all checks passed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
