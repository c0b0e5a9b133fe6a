// The simulated peripheral of the mock BlueZ: a device object with its GATT table, and the protocol state machine behind it.

import DBus
import Protocols
import ServiceRuntime

final class SimulatedPeripheral {
  private static let service = "org.bluez.GattService1"
  private static let characteristic = "org.bluez.GattCharacteristic1"

  private let settings: PeripheralSettings
  private unowned let host: SimulatedRadio
  let path: String
  private let makeMachine: () -> any Machine
  private let started = SystemClock.monotonic
  private var machine: (any PeripheralMachine)?
  /// The Connect call in progress.
  private var connecting: DBusMessage?
  private var isConnected = false
  /// The number of GATT tables so far, which makes their paths unique.
  private var tableCount = 0
  private var notificationCount = 0
  private var connectCount = 0
  private var writeCount = 0
  /// The last written value.
  private var value: [UInt8]
  private var isNotifying = false
  private var notifySocket: PacketSocket?
  private var writeSocket: PacketSocket?

  init(_ settings: PeripheralSettings, of host: SimulatedRadio, machine: @escaping () -> any Machine) {
    self.settings = settings
    self.host = host
    path = MockBlueZ.path(settings.address)
    makeMachine = machine
    value = settings.traits.initialValue ?? []
  }

  private var notifyPath: String { "\(path)/service\(tableCount)/char\(tableCount)1" }
  /// The path of the write characteristic. No object has this path if the profile has no such characteristic.
  private var writePath: String {
    settings.profile.notify == settings.profile.write ? notifyPath : "\(path)/service\(tableCount)/char\(tableCount)2"
  }
  private var offersDescriptors: Bool { !settings.faults.contains(.noDescriptors) }

  /// Whether the peripheral is out of range.
  private var isAway: Bool {
    settings.faults.contains {
      if case .away(let seconds) = $0 { SystemClock.monotonic - started < Int64(seconds) * .second } else { false }
    }
  }

  func advertise() {
    if !isConnected, connecting == nil, !isAway {
      host.deviceFound(
        path: path, address: settings.address, name: settings.name,
        services: settings.traits.advertisesService ? [settings.profile.service] : [], rssi: -60)
    }
  }

  /// Handles a call to an object of this peripheral. Returns false if the call is for another one.
  func handle(_ call: DBusMessage, _ path: String) -> Bool {
    guard host.tree.objects[path] != nil else { return false }
    switch (path, call.member) {
    case (self.path, "Connect"): connect(call)
    case (self.path, "Disconnect"):
      drop()
      host.reply(to: call)
    case (notifyPath, "StartNotify"):
      guard notifySocket == nil else {
        host.reject(call, "NotPermitted", "Notify acquired")
        return true
      }
      isNotifying = true
      host.reply(to: call)
    case (notifyPath, "StopNotify"):
      isNotifying = false
      host.reply(to: call)
    case (notifyPath, "AcquireNotify"): acquireNotify(call)
    case (writePath, "AcquireWrite"): acquireWrite(call)
    case (writePath, "WriteValue"): write(call)
    case (writePath, "ReadValue") where settings.traits.initialValue != nil: host.reply(to: call, .bytes(value))
    default: return false
    }
    return true
  }

  // MARK: The connection

  private func connect(_ call: DBusMessage) {
    connectCount += 1
    guard !isConnected else { return host.reject(call, "AlreadyConnected", "Already Connected") }
    guard connecting == nil else { return host.reject(call, "InProgress", "Operation already in progress") }
    var delay: Nanoseconds = 150 * .millisecond
    for fault in settings.faults {
      if case .slow(let time) = fault { delay = time }
      if case .abort(let count) = fault, connectCount <= count { return host.reject(call, "Failed", "le-connection-abort-by-local") }
    }
    connecting = call
    let isSlow = settings.faults.contains { if case .slow = $0 { true } else { false } }
    (isSlow ? host.after : host.afterRadioDelay)(delay) { [self] in
      guard connecting?.serial == call.serial else { return }
      connecting = nil
      isConnected = true
      host.tree.set(path, MockBlueZ.deviceInterface, "Connected", .bool(true))
      host.reply(to: call)
      host.afterRadioDelay(100 * .millisecond) { [self] in resolveServices() }
    }
  }

  /// Creates the GATT table and starts the machine.
  private func resolveServices() {
    guard isConnected else { return }
    tableCount += 1
    let service = "\(path)/service\(tableCount)"
    host.tree.add(service, [Self.service: ["UUID": .string(settings.profile.service.text), "Device": .path(path), "Primary": .bool(true)]])
    let isShared = notifyPath == writePath  // one characteristic has both roles
    if let notify = settings.profile.notify { add(notifyPath, notify, ["notify"] + (isShared ? settings.writeFlags : []), service) }
    if !isShared, let write = settings.profile.write, !settings.faults.contains(.noCharacteristic) {
      add(writePath, write, settings.writeFlags + (settings.traits.initialValue == nil ? [] : ["read"]), service)
    }
    host.tree.set(path, MockBlueZ.deviceInterface, "ServicesResolved", .bool(true))
    let machine = machine ?? start(makeMachine())
    machine.feed(.linkChanged(.main, .up(maximumSend: settings.mtu - 3)), at: SystemClock.monotonic)
    host.log.write(settings.name, "up")
    if settings.faults.contains(.churn) { churn(machine) }
  }

  private func start(_ machine: some Machine) -> any PeripheralMachine {
    let started = PeripheralHost(machine, of: self, name: settings.name, loop: host.loop, log: host.log)
    self.machine = started
    return started
  }

  private func add(_ path: String, _ uuid: GATTUUID, _ flags: [String], _ service: String) {
    var properties: [String: DBusValue] = [
      "UUID": .string(uuid.text), "Service": .path(service), "Flags": .strings(flags), "MTU": .uint16(UInt16(settings.mtu)),
      "Value": .bytes([]),
    ]
    if flags.contains("notify") { properties["Notifying"] = .bool(false) }
    if offersDescriptors, flags.contains("notify") { properties["NotifyAcquired"] = .bool(false) }
    if offersDescriptors, flags.contains("write-without-response") { properties["WriteAcquired"] = .bool(false) }
    host.tree.add(path, [Self.characteristic: properties])
  }

  /// Drops the connection, or aborts the Connect call in progress.
  func drop() {
    if let waiting = connecting {
      connecting = nil
      host.reject(waiting, "Failed", "le-connection-abort-by-local")
    }
    guard isConnected else { return }
    isConnected = false
    removeTable()
    host.tree.set(path, MockBlueZ.deviceInterface, "ServicesResolved", .bool(false))
    host.tree.set(path, MockBlueZ.deviceInterface, "Connected", .bool(false))
    host.log.write(settings.name, "down")
  }

  /// Removes the GATT table. Ends the machine, or disconnects it if it outlives connections.
  private func removeTable() {
    if settings.traits.outlivesConnections {
      machine?.feed(.linkChanged(.main, .down("disconnected")), at: SystemClock.monotonic)
    } else {
      machine?.isClosed = true
      machine = nil
    }
    isNotifying = false
    notifySocket?.close()
    writeSocket?.close()
    (notifySocket, writeSocket) = (nil, nil)
    host.tree.remove("\(path)/service\(tableCount)")
  }

  /// Changes properties every 20 ms.
  private func churn(_ machine: any PeripheralMachine) {
    guard !machine.isClosed else { return }
    for value in 0..<10 { host.tree.set(path, MockBlueZ.deviceInterface, "ManufacturerData", .bytes([UInt8(value)])) }
    host.tree.set(path, MockBlueZ.deviceInterface, "RSSI", .int16(-50))
    host.after(20 * .millisecond) { [self] in churn(machine) }
  }

  // MARK: The characteristics

  private func acquireNotify(_ call: DBusMessage) {
    guard offersDescriptors else { return host.reject(call, "NotSupported", "Operation is not supported") }
    guard notifySocket == nil, !isNotifying else { return host.reject(call, "NotPermitted", "Notify acquired") }
    if settings.faults.contains(.oddReplies) { return host.reply(to: call, .string("no descriptor")) }
    let pair = PacketSocket.pair { _ in
    } ended: { [weak self] in
      self?.notifySocket = nil
    }
    guard let (serverEnd, clientEnd) = pair else { return host.reject(call, "Failed") }
    notifySocket = serverEnd
    host.loop.add(serverEnd)
    host.reply(to: call, .descriptor(clientEnd), .uint16(UInt16(settings.mtu)))
  }

  private func acquireWrite(_ call: DBusMessage) {
    guard offersDescriptors, settings.writeFlags.contains("write-without-response") else {
      return host.reject(call, "NotSupported", "Operation is not supported")
    }
    if settings.faults.contains(.oddReplies) { return host.reply(to: call, .uint16(1), .uint16(2)) }
    let pair = PacketSocket.pair { [weak self] in
      self?.receiveWrite($0)
    } ended: { [weak self] in
      self?.writeSocket = nil
    }
    guard let (serverEnd, clientEnd) = pair else { return host.reject(call, "Failed") }
    writeSocket = serverEnd
    host.loop.add(serverEnd)
    host.reply(to: call, .descriptor(clientEnd), .uint16(UInt16(settings.mtu)))
  }

  private func write(_ call: DBusMessage) {
    guard let bytes = call.body.first?.bytes, let options = call.body.dropFirst().first?.dictionary else {
      return host.reject(call, "InvalidArguments")
    }
    let isRequest = options["type"]?.string == "request"
    guard settings.writeFlags.contains(isRequest ? "write" : "write-without-response") else { return host.reject(call, "NotSupported") }
    guard bytes.count <= (isRequest ? 512 : settings.mtu - 3) else { return host.reject(call, "InvalidValueLength") }
    guard isRequest else {
      host.reply(to: call)
      return receiveWrite(bytes)
    }
    // An acknowledged write takes one connection interval.
    host.afterRadioDelay(7_500 * .microsecond) { [self] in
      writeCount += 1
      for fault in settings.faults {
        switch fault {
        case .noAnswer(let count) where writeCount % count == 0: return host.log.write(settings.name, "write left unanswered")
        case .refuse(let count) where writeCount % count == 0: return host.reject(call, "Failed", "Operation failed with ATT error: 0x0e")
        case .dropWrites(let count) where writeCount % count == 0: return drop()
        default: break
        }
      }
      host.reply(to: call)
      receiveWrite(bytes)
    }
  }

  private func receiveWrite(_ bytes: [UInt8]) {
    host.log.write(settings.name, "< \(EscapedText.of(bytes))")
    value = bytes
    machine?.feed(.received(.main, bytes), at: SystemClock.monotonic)
  }

  private func notify(_ bytes: [UInt8]) {
    host.log.write(settings.name, "> \(EscapedText.of(bytes))")
    if let notifySocket {
      notifySocket.send(bytes)
    } else if isNotifying {
      host.tree.set(notifyPath, Self.characteristic, "Value", .bytes(bytes))
    }
  }

  // MARK: The machine

  /// Sends bytes as notifications of the negotiated size.
  fileprivate func transmit(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      send(Array(rest.prefix(settings.mtu - 3)))
      rest = rest.dropFirst(settings.mtu - 3)
    }
  }

  /// Drops the connection once the machine has handled its input.
  fileprivate func dropLater() { host.after(0) { [self] in drop() } }

  private func send(_ bytes: [UInt8]) {
    notificationCount += 1
    for fault in settings.faults {
      switch fault {
      case .empty(let count) where notificationCount % count == 0: notify([])
      case .drop(let count) where notificationCount % count == 0: dropLater()
      case .serviceChange(let count) where notificationCount == count:
        host.after(0) { [self] in
          guard isConnected else { return }
          host.tree.set(path, MockBlueZ.deviceInterface, "ServicesResolved", .bool(false))
          removeTable()
          host.afterRadioDelay(50 * .millisecond) { [self] in resolveServices() }
        }
      default: break
      }
    }
    notify(bytes)
  }
}

/// Hides the type of the running machine.
private protocol PeripheralMachine: EventSource {
  func feed(_ input: Input, at now: Instant)
}

/// Runs the machine of the peripheral, and sends its output as notifications.
private final class PeripheralHost<Peer: Machine>: MachineRunner<Peer>, PeripheralMachine {
  private unowned let peripheral: SimulatedPeripheral

  init(_ machine: Peer, of peripheral: SimulatedPeripheral, name: String, loop: EventLoop, log: ActivityLog) {
    self.peripheral = peripheral
    super.init(machine, name: name, loop: loop, log: log)
    loop.add(self)
    start()
  }

  override func perform(_ effect: Effect, at now: Instant) {
    switch effect {
    case .send(_, let bytes, let id, _):
      peripheral.transmit(bytes)
      if let id { feed(.sent(id, failure: nil), at: now) }
    case .resetLink: peripheral.dropLater()
    default: super.perform(effect, at: now)
    }
  }
}
