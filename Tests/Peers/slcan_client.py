"""Reads a simulated car through its slcan adapter with python-can's slcan interface and can-isotp.
Usage: slcan_client.py CHANNEL. CHANNEL is a serial port or socket://HOST:PORT. Prints one line per step."""
import sys

import can
import isotp


def exchange(bus, identifier, data):
    """The first response to a single frame."""
    bus.send(can.Message(arbitration_id=identifier, data=data, is_extended_id=identifier > 0x7FF))
    while (frame := bus.recv(5)) is not None:
        if frame.arbitration_id != identifier and not frame.is_error_frame:
            return f"{frame.arbitration_id:X}#{frame.data.hex().upper()}"
    sys.exit(f"slcan_client: no response to {identifier:X}")


with can.Bus(interface="slcan", channel=sys.argv[1], bitrate=500000, sleep_after_open=0.1) as bus:
    print("version", bus.get_version(2))
    print("serial number", bus.get_serial_number(2))
    print("response", exchange(bus, 0x7DF, [2, 1, 0, 0, 0, 0, 0, 0]))
    stack = isotp.CanStack(bus, address=isotp.Address(isotp.AddressingMode.Normal_11bits, txid=0x7E4, rxid=0x7EC), params={"tx_padding": 0, "blocksize": 4})
    stack.start()
    stack.send(bytes.fromhex("220101"))
    record = stack.recv(block=True, timeout=5)
    stack.stop()
    print("record", record and f"{len(record)} bytes, {record[:3].hex()}")
