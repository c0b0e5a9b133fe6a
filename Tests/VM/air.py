#!/usr/bin/env python3
"""Virtual Bluetooth in the guest: a controller on /dev/vhci, which becomes hci0, and peripherals that pass all bytes on to simulators
(vehiclesim on TCP). Everything above the radio is real: kernel and bluetoothd.

  air.py OBD-HOST:PORT MIRROR-HOST:PORT     reads commands from /run/air.sock, one per line: off, on, drop, mtu N

Bumble 0.0.236's controller needs two fixes to work with bluetoothd: data must come from the address that connected, and a
cancelled connect must end with a Connection Complete event (Core specification 4.E.7.8.13)."""
import asyncio, os, socket, sys

from bumble import hci
from bumble.controller import Controller
from bumble.core import AdvertisingData, PhysicalTransport, UUID
from bumble.device import Device
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.host import Host
from bumble.link import LocalLink
from bumble.transport import open_transport

class Link(LocalLink):
    def send_acl_data(self, sender, destination, transport, data):
        connection = sender.le_connections.get(destination)
        peer = self.find_le_controller(destination)
        if transport == PhysicalTransport.LE and connection and peer:
            asyncio.get_running_loop().call_soon(peer.on_link_acl_data, connection.self_address, transport, data)


class Radio(Controller):
    # With version 4.2 the kernel uses only the older commands that Bumble implements.
    le_features = hci.LeFeatureMask.LE_ENCRYPTION
    hci_version = lmp_version = hci.HCI_VERSION_BLUETOOTH_CORE_4_2
    acl_data_packet_length = le_acl_data_packet_length = 251

    def on_hci_le_create_connection_cancel_command(self, _):
        pending, self.pending_le_connection = self.pending_le_connection, None
        if pending is None:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR)
        event = hci.HCI_LE_Connection_Complete_Event(
            status=hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, connection_handle=0, role=0,
            peer_address_type=pending.peer_address_type, peer_address=pending.peer_address, connection_interval=0,
            peripheral_latency=0, supervision_timeout=0, central_clock_accuracy=0)
        asyncio.get_running_loop().call_soon(self.send_hci_packet, event)
        return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.SUCCESS)


class Wire:
    """Passes packets from a host to its controller, in a later turn as on real hardware."""

    def __init__(self, controller):
        self.controller = controller

    def on_packet(self, packet):
        asyncio.get_running_loop().call_soon(self.controller.on_packet, packet)


class Peripheral:
    """A BLE OBD adapter."""

    name, address = "Veepeak", "AA:BB:CC:00:11:22/P"
    advertised = [(AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, bytes(UUID("FFF0")))]

    def __init__(self, link, place):
        self.host, self.port = place.rsplit(":", 1)
        self.connection = self.writer = None
        self.is_on = True
        radio = Radio(self.name, link=link, public_address=self.address)
        self.device = Device(name=self.name, address=hci.Address(self.address), host=Host(radio, Wire(radio)))
        self.device.gatt_server.max_mtu = 185
        self.device.add_service(self.service())
        self.device.on("connection", self.connected)

    def service(self):
        properties = Characteristic.Properties
        self.out = Characteristic("FFF1", properties.NOTIFY, Characteristic.READABLE, b"")
        into = Characteristic("FFF2", properties.WRITE | properties.WRITE_WITHOUT_RESPONSE, Characteristic.WRITEABLE,
                              CharacteristicValue(write=self.written))
        return Service("FFF0", [self.out, into])

    async def start(self):
        await self.device.power_on()
        await self.advertise()

    async def advertise(self):
        data = AdvertisingData([(AdvertisingData.FLAGS, b"\x06"), (AdvertisingData.COMPLETE_LOCAL_NAME, self.name.encode())] + self.advertised)
        await self.device.start_advertising(own_address_type=hci.OwnAddressType.PUBLIC, auto_restart=False,
                                            advertising_data=bytes(data), advertising_interval_min=100, advertising_interval_max=100)

    def connected(self, connection):
        self.connection = connection
        connection.on("disconnection", self.disconnected)
        self.serving = asyncio.ensure_future(self.serve(connection))

    def disconnected(self, _):
        self.connection = None
        self.serving.cancel()
        if self.is_on:
            asyncio.ensure_future(self.advertise())

    async def serve(self, connection):
        """Sends the adapter's output in notifications of 20 bytes, as real adapters do."""
        reader, self.writer = await asyncio.open_connection(self.host, int(self.port))
        try:
            while data := await reader.read(512):
                for start in range(0, len(data), 20):
                    await self.device.notify_subscriber(connection, self.out, data[start:start + 20])
        finally:
            self.writer.close()
            self.writer = None

    def written(self, _, data):
        if self.writer:
            self.writer.write(bytes(data))

    async def obey(self, words):
        if words[0] == "mtu":
            self.device.gatt_server.max_mtu = int(words[1])
        elif words[0] == "on" and not self.is_on:
            self.is_on = True
            await self.advertise()
        elif words[0] in ("off", "drop"):
            self.is_on = words[0] != "off"
            if self.connection:
                await self.connection.disconnect()
            elif not self.is_on:
                await self.device.stop_advertising()


class Mirror(Peripheral):
    """The ESP32 of a smart mirror: one characteristic, written with response; advertises its name only."""

    name, address = "ESP32-BLE-Server", "AA:BB:CC:00:11:33/P"
    advertised = []
    last = b"Device Connected"

    def service(self):
        properties = Characteristic.Properties
        value = CharacteristicValue(read=lambda _: self.last, write=self.written)
        return Service("C0FE", [Characteristic("3DEE", properties.READ | properties.WRITE, Characteristic.READABLE | Characteristic.WRITEABLE, value)])

    def written(self, connection, data):
        self.last = bytes(data)
        super().written(connection, data)


async def main():
    link = Link()
    wire = await open_transport("vhci")
    Radio("hci0", host_source=wire.source, host_sink=wire.sink, link=link, public_address="00:1A:7D:DA:71:01/P")
    peripheral = Peripheral(link, sys.argv[1])
    await peripheral.start()
    await Mirror(link, sys.argv[2]).start()

    async def steer(reader, writer):
        while words := (await reader.readline()).decode().split():
            await peripheral.obey(words)
            writer.write(b"ok\n")
            await writer.drain()
        writer.close()

    await asyncio.start_unix_server(steer, "/run/air.sock")
    if "NOTIFY_SOCKET" in os.environ:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))
    await wire.source.wait_for_termination()


asyncio.run(main())
