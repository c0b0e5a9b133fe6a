"""A mock BlueZ with several peripherals. Each `vehiclesim … --on ble:` is a mock BlueZ with one peripheral on a message bus of its own.
This message bus combines them into one BlueZ with one adapter and all their peripherals for the daemon. The adapter can be switched
off; BlueZ and the bus can end. It parses headers and the first string of bodies, and passes on everything else.
Sources: the D-Bus specification (marshalling, EXTERNAL, NEGOTIATE_UNIX_FD); BlueZ's adapter-api.txt."""
import array, asyncio, itertools, os, socket, struct
from contextlib import suppress

ADAPTER, BLUEZ, BUS = "/org/bluez/hci0", "org.bluez", "org.freedesktop.DBus"
PROPERTIES, MANAGER = f"{BUS}.Properties", f"{BUS}.ObjectManager"
CALL, REPLY, ERROR, SIGNAL = 1, 2, 3, 4
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_TO, DESTINATION, SENDER, SIGNATURE, DESCRIPTORS = range(1, 10)
FIELD_TYPES = dict(enumerate("osssussgu", 1))
LISTING_TIMEOUT = 1.0  # seconds for a peripheral to list its objects


def pad(out, to):
    out.extend(bytes(-len(out) % to))


def put(out, kind, value):
    """Appends a value of a type of one letter, `v` (a pair of type and value), `as`, or a dictionary `a{?…}`."""
    if kind in "yb":
        if kind == "b":
            pad(out, 4)
        out.extend(struct.pack("<B" if kind == "y" else "<I", value))
    elif kind == "u":
        pad(out, 4)
        out.extend(struct.pack("<I", value))
    elif kind in "so":
        pad(out, 4)
        data = value.encode()
        out.extend(struct.pack("<I", len(data)) + data + b"\0")
    elif kind == "g":
        out.extend(bytes([len(value)]) + value.encode() + b"\0")
    elif kind == "v":
        put(out, "g", value[0])
        put(out, *value)
    else:
        pad(out, 4)
        at = len(out)
        out.extend(bytes(4))
        is_map = kind[1] == "{"
        pad(out, 8 if is_map else 4)
        begin = len(out)
        for item in value.items() if is_map else value:
            if is_map:
                pad(out, 8)
                put(out, kind[2], item[0])
                put(out, kind[3:-1], item[1])
            else:
                put(out, kind[1:], item)
        struct.pack_into("<I", out, at, len(out) - begin)


def marshal(*pairs):
    out = bytearray()
    for kind, value in pairs:
        put(out, kind, value)
    return bytes(out)


def first_word(body):
    """The first string of a body."""
    if len(body) < 4:
        return ""
    (length,) = struct.unpack_from("<I", body)
    return body[4:4 + length].decode(errors="replace")


class Message:
    """A message with a parsed header."""

    def __init__(self, kind, fields, body=b"", flags=0, serial=0, files=()):
        self.kind, self.fields, self.body, self.flags, self.serial, self.files = kind, fields, body, flags, serial, list(files)

    def __getattr__(self, name):
        return self.fields.get({"path": PATH, "interface": INTERFACE, "member": MEMBER, "reply_to": REPLY_TO, "sender": SENDER,
                                "destination": DESTINATION}[name])

    @staticmethod
    def length(data):
        """The size of the message that begins here; None if too few bytes have been received."""
        if len(data) < 16:
            return None
        body, _, fields = struct.unpack_from("<III", data, 4)
        return 16 + fields + -fields % 8 + body

    @classmethod
    def read(cls, data):
        kind, flags = data[1], data[2]
        body, serial, length = struct.unpack_from("<III", data, 4)
        fields, at = {}, 16
        while at < 16 + length:
            at += -at % 8
            code, kind_of = data[at], chr(data[at + 2])
            at += 4
            if kind_of == "g":
                fields[code] = data[at + 1:at + 1 + data[at]].decode()
                at += data[at] + 2
            else:
                at += -at % 4
                (number,) = struct.unpack_from("<I", data, at)
                at += 4
                if kind_of != "u":
                    fields[code] = data[at:at + number].decode()
                    at += number + 1
                else:
                    fields[code] = number
        return cls(kind, fields, bytes(data[len(data) - body:]), flags, serial)

    def bytes(self, serial):
        out = bytearray(b"l" + bytes([self.kind, self.flags, 1]) + struct.pack("<III", len(self.body), serial, 0))
        for code, value in sorted(self.fields.items()):
            pad(out, 8)
            out.append(code)
            put(out, "v", (FIELD_TYPES[code], value))
        struct.pack_into("<I", out, 12, len(out) - 16)
        pad(out, 8)
        return bytes(out) + self.body

    def changed(self, **fields):
        """A copy with these header fields replaced, by number; None removes a field."""
        names = {"sender": SENDER, "destination": DESTINATION, "reply_to": REPLY_TO}
        new = self.fields | {names[name]: value for name, value in fields.items()}
        return Message(self.kind, {k: v for k, v in new.items() if v is not None}, self.body, self.flags, 0, self.files)


class Peer:
    """A connection to the bus: the daemon's, or a peripheral's."""

    def __init__(self, air, connection, name):
        self.air, self.connection, self.name = air, connection, name
        self.data, self.files, self.out, self.is_greeted = bytearray(), [], [], False
        self.serials = itertools.count(1)
        self.is_peripheral = False
        self.objects = {}  # a peripheral's, in the order in which they came
        self.calls = {}  # what it was asked, by serial: who is told the answer
        self.loop = asyncio.get_running_loop()
        connection.setblocking(False)
        self.loop.add_reader(connection, self.readable)

    def readable(self):
        try:
            data, ancillary, _, _ = self.connection.recvmsg(65536, socket.CMSG_SPACE(64))
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.files += array.array("i", content[:len(content) - len(content) % 4])
        if not data:
            return self.close()
        self.data += data
        if not self.is_greeted:
            self.greet()
        while self.is_greeted and (length := Message.length(self.data)) and len(self.data) >= length and self.connection:
            message = Message.read(self.data[:length])
            del self.data[:length]
            count = message.fields.get(DESCRIPTORS, 0)
            message.files, self.files = self.files[:count], self.files[count:]
            self.air.take(self, message)
            for file in message.files:
                os.close(file)

    def greet(self):
        while b"\r\n" in self.data and not self.is_greeted:
            line, _, rest = bytes(self.data).partition(b"\r\n")
            self.data = bytearray(rest)
            line = line.lstrip(b"\0")
            if line.startswith(b"BEGIN"):
                self.is_greeted = True
            else:
                answer = b"OK " + b"0" * 32 if line.startswith(b"AUTH") else b"AGREE_UNIX_FD" if line.startswith(b"NEG") else b"ERROR"
                self.put(answer + b"\r\n", [])

    def send(self, message):
        """Sends a message and returns its serial."""
        serial = next(self.serials)
        self.put(message.bytes(serial), [os.dup(file) for file in message.files])
        return serial

    def call(self, path, interface, member, *arguments, sender=None):
        """Calls a peripheral without waiting for the reply."""
        fields = {PATH: path, INTERFACE: interface, MEMBER: member, DESTINATION: self.name, SENDER: sender or self.air.owner or BUS}
        if arguments:
            fields[SIGNATURE] = "".join(kind for kind, _ in arguments)
        self.send(Message(CALL, fields, marshal(*arguments)))

    def put(self, data, files):
        self.out.append((data, files))
        if len(self.out) == 1:
            self.write()

    def write(self):
        while self.out and self.connection:
            data, files = self.out[0]
            try:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
                sent = self.connection.sendmsg([data], rights)
            except BlockingIOError:
                return self.loop.add_writer(self.connection, self.write)
            except OSError:
                return self.close()
            for file in files:
                os.close(file)
            self.out[0] = (data[sent:], [])
            if sent == len(data):
                del self.out[0]
        if self.connection:
            self.loop.remove_writer(self.connection)

    def close(self):
        if not self.connection:
            return
        connection, self.connection = self.connection, None
        self.loop.remove_reader(connection)
        self.loop.remove_writer(connection)
        connection.close()
        for file in itertools.chain(self.files, *(files for _, files in self.out)):
            os.close(file)
        self.files, self.out = [], []
        self.air.lost(self)


class Air:
    """The bus, BlueZ and its adapter."""

    def __init__(self, path):
        self.path, self.address = path, f"unix:path={path}"
        self.numbers, self.lives = itertools.count(1), itertools.count(1)
        self.peers, self.searching, self.is_powered, self.listener = [], set(), True, None
        self.owner = None
        self.refusals = 0  # so many searches are refused

    async def open(self):
        """Opens the bus with BlueZ."""
        self.listener = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self.listener, self.accept)
        self.owner = self.owner or f":0.{next(self.lives)}"

    def accept(self):
        with suppress(OSError):
            self.peers.append(Peer(self, self.listener.accept()[0], f":1.{next(self.numbers)}"))

    def close(self):
        for peer in list(self.peers):
            peer.close()
        self.close_door()

    def close_door(self):
        if self.listener:
            asyncio.get_running_loop().remove_reader(self.listener)
            self.listener.close()
            self.listener = None
            os.unlink(self.path)

    @property
    def peripherals(self):
        return [peer for peer in self.peers if peer.is_peripheral]

    @property
    def centrals(self):
        return [peer for peer in self.peers if peer.is_greeted and not peer.is_peripheral]

    # What can go wrong.

    def power(self, is_on):
        """Switches the adapter on or off, as the user would."""
        self.is_powered = is_on
        if not is_on:
            self.searching.clear()
        for peer in self.peripherals:
            peer.call(ADAPTER, PROPERTIES, "Set", ("s", f"{BLUEZ}.Adapter1"), ("s", "Powered"), ("v", ("b", is_on)))
        self.tell_adapter(Powered=("b", is_on), **({} if is_on else {"Discovering": ("b", False)}))

    def end_bluez(self):
        """Ends BlueZ and all its connections."""
        for name in list(self.searching):
            self.stop_search(name)
        for peer in self.peripherals:
            for path in peer.objects:
                if path.count("/") == ADAPTER.count("/") + 1:
                    peer.call(path, f"{BLUEZ}.Device1", "Disconnect")
        self.owner_becomes(None)

    def begin_bluez(self):
        self.is_powered = True
        self.owner_becomes(f":0.{next(self.lives)}")

    def owner_becomes(self, new):
        old, self.owner = self.owner, new
        body = marshal(("s", BLUEZ), ("s", old or ""), ("s", new or ""))
        fields = {PATH: "/org/freedesktop/DBus", INTERFACE: BUS, MEMBER: "NameOwnerChanged", SENDER: BUS, SIGNATURE: "sss"}
        for peer in self.centrals:
            peer.send(Message(SIGNAL, fields, body, 1))

    def end_bus(self):
        """Ends the bus and BlueZ; the peripherals stay."""
        self.end_bluez()
        self.close_door()
        for peer in self.centrals:
            peer.close()

    # What is said.

    def take(self, peer, message):
        if message.kind == CALL:
            if message.destination == BUS:
                self.driver(peer, message)
            else:
                self.bluez(peer, message)
        elif message.kind == SIGNAL:
            if peer.is_peripheral:
                self.relay(peer, message)
        else:
            asker, serial = peer.calls.pop(message.reply_to, (None, 0))
            if callable(asker):
                asker(message)
            elif asker and asker.connection:
                asker.send(message.changed(sender=self.owner or BUS, destination=asker.name, reply_to=serial))

    def answer(self, peer, call, *pairs):
        fields = {REPLY_TO: call.serial, DESTINATION: peer.name, SENDER: BUS if call.destination == BUS else self.owner or BUS}
        if pairs:
            fields[SIGNATURE] = "".join(kind for kind, _ in pairs)
        if not call.flags & 1:
            peer.send(Message(REPLY, fields, marshal(*pairs), 1))

    def refuse(self, peer, call, name, text=""):
        fields = {REPLY_TO: call.serial, DESTINATION: peer.name, SENDER: BUS, SIGNATURE: "s", ERROR_NAME: name}
        if not call.flags & 1:
            peer.send(Message(ERROR, fields, marshal(("s", text)), 1))

    def driver(self, peer, call):
        """Handles calls to the bus itself."""
        if call.member == "Hello":
            return self.answer(peer, call, ("s", peer.name))
        if call.member in ("AddMatch", "RemoveMatch"):
            return self.answer(peer, call)
        if call.member == "RequestName":
            peer.is_peripheral = True
            self.answer(peer, call, ("u", 1))
            if not self.is_powered:
                peer.call(ADAPTER, PROPERTIES, "Set", ("s", f"{BLUEZ}.Adapter1"), ("s", "Powered"), ("v", ("b", False)))
            for name in self.searching:
                peer.call(ADAPTER, f"{BLUEZ}.Adapter1", "StartDiscovery", sender=name)
            return None
        if call.member == "GetNameOwner" and first_word(call.body) == BLUEZ and self.owner:
            return self.answer(peer, call, ("s", self.owner))
        missing = "NameHasNoOwner" if call.member == "GetNameOwner" else "UnknownMethod"
        return self.refuse(peer, call, f"{BUS}.Error.{missing}", missing)

    def bluez(self, peer, call):
        if not self.owner or call.destination not in (BLUEZ, self.owner):
            return self.refuse(peer, call, f"{BUS}.Error.ServiceUnknown", "it has gone")
        if call.interface == f"{BLUEZ}.Adapter1" and call.path == ADAPTER:
            return self.adapter(peer, call)
        if call.member == "GetManagedObjects":
            return asyncio.ensure_future(self.list_objects(peer, call))
        return self.pass_on(peer, call, call.path)

    def pass_on(self, peer, call, path):
        owner = next((one for one in self.peripherals if path in one.objects), None)
        if not owner:
            return self.refuse(peer, call, f"{BUS}.Error.UnknownObject", f"there is no {path}")
        owner.calls[owner.send(call.changed(sender=peer.name, destination=owner.name))] = (peer, call.serial)

    def adapter(self, peer, call):
        error = f"{BLUEZ}.Error."
        if call.member == "SetDiscoveryFilter":
            return self.answer(peer, call)
        if not self.is_powered:
            return self.refuse(peer, call, error + "NotReady", "Resource Not Ready")
        if call.member == "StartDiscovery":
            if peer.name in self.searching or self.refusals > 0:
                self.refusals -= 1
                return self.refuse(peer, call, error + "InProgress", "Operation already in progress")
            self.searching.add(peer.name)
            for one in self.peripherals:
                one.call(ADAPTER, call.interface, call.member, sender=peer.name)
            self.answer(peer, call)
            return self.tell_adapter(Discovering=("b", True))
        if call.member == "StopDiscovery":
            if peer.name not in self.searching:
                return self.refuse(peer, call, error + "Failed", "No discovery started")
            self.answer(peer, call)
            return self.stop_search(peer.name)
        if call.member == "RemoveDevice":
            return self.pass_on(peer, call, first_word(call.body))
        return self.refuse(peer, call, error + "NotSupported")

    def stop_search(self, name):
        self.searching.discard(name)
        for one in self.peripherals:
            one.call(ADAPTER, f"{BLUEZ}.Adapter1", "StopDiscovery", sender=name)
        if not self.searching:
            self.tell_adapter(Discovering=("b", False))

    async def list_objects(self, peer, call):
        """All objects of BlueZ: the adapter, and those of each peripheral."""
        entries = bytearray()
        put(entries, "a{oa{sa{sv}}}", {ADAPTER: {f"{BLUEZ}.Adapter1": {
            "Address": ("s", "00:11:22:33:44:55"), "Name": ("s", "air"), "Powered": ("b", self.is_powered),
            "Discovering": ("b", bool(self.searching))}}})
        del entries[:8]
        told = []
        for one in self.peripherals:
            answer = asyncio.get_running_loop().create_future()
            fields = {PATH: "/", INTERFACE: MANAGER, MEMBER: "GetManagedObjects", DESTINATION: one.name, SENDER: peer.name}
            one.calls[one.send(Message(CALL, fields))] = (lambda message, answer=answer: answer.done() or answer.set_result(message), 0)
            told.append(answer)
        if told:
            await asyncio.wait(told, timeout=LISTING_TIMEOUT)
        for answer in told:
            if answer.done() and answer.result().kind == REPLY:
                for entry in list_entries(answer.result().body):
                    pad(entries, 8)
                    entries += entry
            else:
                answer.cancel()
        if peer.connection:
            fields = {REPLY_TO: call.serial, DESTINATION: peer.name, SENDER: self.owner or BUS, SIGNATURE: "a{oa{sa{sv}}}"}
            peer.send(Message(REPLY, fields, struct.pack("<II", len(entries), 0) + bytes(entries), 1))

    def relay(self, peer, signal):
        """Forwards a peripheral's signals to the daemon, except those of its adapter."""
        if signal.interface == MANAGER:
            path = first_word(signal.body)
            if path == ADAPTER:
                return
            if signal.member == "InterfacesAdded":
                peer.objects[path] = True
            else:
                peer.objects.pop(path, None)
        elif signal.path == ADAPTER:
            return
        if self.owner:
            for one in self.centrals:
                one.send(signal.changed(sender=self.owner))

    def tell_adapter(self, **changed):
        self.tell(ADAPTER, PROPERTIES, "PropertiesChanged", ("s", f"{BLUEZ}.Adapter1"), ("a{sv}", changed), ("as", []))

    def tell(self, path, interface, member, *pairs):
        fields = {PATH: path, INTERFACE: interface, MEMBER: member, SENDER: self.owner,
                  SIGNATURE: "".join(kind for kind, _ in pairs)}
        if self.owner:
            for one in self.centrals:
                one.send(Message(SIGNAL, fields, marshal(*pairs), 1))

    def lost(self, peer):
        self.peers.remove(peer)
        if peer.is_peripheral:
            for path in reversed(peer.objects):
                if path.count("/") == ADAPTER.count("/") + 1:
                    self.tell(path, PROPERTIES, "PropertiesChanged", ("s", f"{BLUEZ}.Device1"), ("a{sv}", {"Connected": ("b", False)}), ("as", []))
            for path in reversed(peer.objects):
                names = [f"{BLUEZ}.{name}" for name in ("Device1", "GattService1", "GattCharacteristic1")]
                self.tell("/", MANAGER, "InterfacesRemoved", ("o", path), ("as", names))
            for asker, serial in peer.calls.values():
                if isinstance(asker, Peer) and asker.connection:
                    fields = {REPLY_TO: serial, DESTINATION: asker.name, SENDER: BUS, SIGNATURE: "s", ERROR_NAME: f"{BUS}.Error.NoReply"}
                    asker.send(Message(ERROR, fields, marshal(("s", "the peripheral is gone")), 1))
        elif peer.name in self.searching:
            self.stop_search(peer.name)


def list_entries(body):
    """The entries of an object list, without the adapter."""
    (length,) = struct.unpack_from("<I", body)
    at, end = 8, 8 + length
    while at < end:
        at += -at % 8
        begin = at
        (size,) = struct.unpack_from("<I", body, at)
        path = body[at + 4:at + 4 + size].decode()
        at += 5 + size
        at += -at % 4
        (size,) = struct.unpack_from("<I", body, at)
        at += 4
        at += -at % 8 + size
        if path != ADAPTER:
            yield body[begin:at]
