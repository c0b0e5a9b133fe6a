"""An ECU made of can-isotp and udsoncan on a virtual bus of python-can, behind a slcan adapter on a TCP port. It prints the port first, then
each request. Identifiers 7E0 and 7DF, responses 7E8. Its flow control permits two frames at a time, 2 ms apart."""
import socket
import sys
import threading
import time

import can
import isotp
from udsoncan import Request, Response
from udsoncan.services import ReadDataByIdentifier

VIN = b"WVWZZZ1KZAW000001"
RECORD = bytes(range(100))


def legacy(payload):
    """The response to a request of SAE J1979; None: this ECU has none."""
    match payload:
        case b"\x01\x00": return b"\x41\x00" + (1 << 31 - 11 | 1 << 31 - 12 | 1 << 31 - 4).to_bytes(4)
        case b"\x01\x0c": return b"\x41\x0c\x1a\xf8"
        case b"\x01\x0d": return b"\x41\x0d\x32"
        case b"\x01\x05": return b"\x41\x05\x7b"
        case b"\x09\x02": return b"\x49\x02\x01" + VIN
        case b"\x09\x00": return b"\x49\x00\x40\x00\x00\x00"


def answer(payload, send):
    """Sends the response to a request."""
    print("request", payload.hex(), flush=True)
    if payload[0] in (0x01, 0x09):
        if (response := legacy(payload)) is not None:
            send(response)
        return
    request = Request.from_payload(payload)
    if request.service is not ReadDataByIdentifier:
        return send(Response(request.service or ReadDataByIdentifier, Response.Code.ServiceNotSupported).get_payload())
    data = b""
    for start in range(0, len(request.data), 2):
        match request.data[start:start + 2]:
            case b"\xf1\x90": data += b"\xf1\x90" + VIN
            case b"\xd0\x01": data += b"\xd0\x01" + RECORD
            case b"\xd0\x02":
                send(Response(request.service, Response.Code.RequestCorrectlyReceived_ResponsePending).get_payload())
                time.sleep(0.5)
                data += b"\xd0\x02\x2a"
            case _: return send(Response(request.service, Response.Code.RequestOutOfRange).get_payload())
    send(Response(request.service, Response.Code.PositiveResponse, data=data).get_payload())


def ecu():
    bus = can.Bus(interface="virtual", channel="car")
    notifier = can.Notifier(bus, [])
    stacks = [
        isotp.NotifierBasedCanStack(
            bus, notifier, address=isotp.Address(isotp.AddressingMode.Normal_11bits, txid=0x7E8, rxid=rxid),
            params={"blocksize": 2, "stmin": 2, "tx_padding": 0xAA})
        for rxid in (0x7E0, 0x7DF)
    ]
    for stack in stacks:
        stack.start()
    for stack in stacks:
        threading.Thread(target=serve, args=(stack, stacks[0].send), daemon=True).start()


def serve(stack, send):
    while True:
        payload = stack.recv(block=True, timeout=60)
        if payload:
            answer(bytes(payload), send)


def text(frame):
    kind, digits = ("T", 8) if frame.is_extended_id else ("t", 3)
    return f"{kind}{frame.arbitration_id:0{digits}X}{frame.dlc}{frame.data.hex().upper()}\r".encode()


def frame(line):
    digits = 3 if line[0] == "t" else 8
    data = bytes.fromhex(line[2 + digits:])
    return can.Message(arbitration_id=int(line[1:1 + digits], 16), data=data, is_extended_id=digits == 8)


def adapter(client):
    """Passes on frames between the client and the bus."""
    bus = can.Bus(interface="virtual", channel="car")
    notifier = can.Notifier(bus, [lambda message: client.sendall(text(message))])
    stream = client.makefile("r", newline="\r", encoding="ascii")
    for line in stream:
        line = line.strip()
        if line[:1] in ("t", "T"):
            bus.send(frame(line))
            client.sendall(line[:1].replace("t", "z").replace("T", "Z").encode() + b"\r")
        elif line == "V":
            client.sendall(b"V1000\r")
        elif line == "F":
            client.sendall(b"F00\r")
        else:
            client.sendall(b"\r")
    notifier.stop()
    bus.shutdown()


ecu()
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    try:
        adapter(server.accept()[0])
    except OSError as error:
        print("client", error, file=sys.stderr)
