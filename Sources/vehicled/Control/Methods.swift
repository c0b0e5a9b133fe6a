// One short function per method of the socket. The properties and actions of a device come from the schema that its
// machine declares.

import Glibc
import Protocols
import Varlink

@Loop final class Methods {
  /// The maximum number of references in one call.
  private static let maxReferences = 1024
  let hub: DeviceHub
  private let blueZ: BlueZ
  /// The state directory.
  private let directory: String
  let admission: Admission
  let scheduler = CallScheduler()
  /// The number of calls so far.
  private(set) var calls = 0
  /// The access rules. A change discards cached grants, and checks every stream again.
  var access: Access {
    didSet {
      accessGeneration += 1
      reviewAccess()
    }
  }
  private(set) var accessGeneration = 0
  let accounts: Accounts
  let polkit = Polkit(SystemBus())
  /// Reloads the configuration and returns what changed; set by the daemon.
  var reload: @Loop () -> Result<Contract.Reload.Result, ContractError> = { .success(.init(changed: [])) }

  init(hub: DeviceHub, access: Access, blueZ: BlueZ, directory: String, accounts: Accounts = Accounts(), admission: Admission = Admission())
  {
    self.accounts = accounts
    self.admission = admission
    self.hub = hub
    self.directory = directory
    self.blueZ = blueZ
    self.access = access
    accounts.changed = { [weak self] in self?.reviewAccounts() }
  }

  /// The right that a method requires, on the daemon or on the devices that it looks up, and its implementation.
  typealias Handler = (right: Right?, scope: Scope, run: @Loop (Methods) -> (Call) throws -> Void)

  /// The handlers by method name; a test compares them with the interface definition.
  static let handlers: [String: Handler] = [
    VarlinkService.GetInfo.name: (nil, .daemon, getInfo),
    VarlinkService.GetInterfaceDescription.name: (nil, .daemon, getInterfaceDescription),
    Contract.Status.name: (.observe, .someDevice, status),
    Contract.Describe.name: (.observe, .someDevice, describe),
    Contract.Get.name: (.observe, .someDevice, get),
    Contract.Set.name: (.control, .someDevice, set),
    Contract.Call.name: (.control, .someDevice, run),
    Contract.Watch.name: (.observe, .someDevice, watch),
    Contract.Drive.name: (.drive, .someDevice, drive),
    Contract.Scan.name: (.control, .daemon, scan),
    Contract.Diagnose.name: (.observe, .daemon, diagnose),
    Contract.Statistics.name: (.observe, .daemon, statistics),
    Contract.Record.name: (.observe, .someDevice, record),
    Contract.Connect.name: (.control, .someDevice, connect),
    Contract.Disconnect.name: (.control, .someDevice, disconnect),
    Contract.Reload.name: (.control, .daemon, reloadConfiguration),
    Contract.LogLevel.name: (.control, .daemon, logLevel),
    Contract.Log.name: (.observe, .someDevice, log),
  ]

  func answer(_ call: Call) {
    calls += 1
    guard let handler = Self.handlers[call.request.method] else { return call.fail(unknown(call.request.method)) }
    guard let right = handler.right else { return answer(call, handler) }
    call.right = right
    if call.hasCached(right) { return answer(call, handler) }
    let device = handler.scope == .someDevice ? call.request.text(of: "device") : nil
    let scope = device.map { .device($0) } ?? handler.scope
    switch access.decide(right, on: scope, for: call.peer, accounts.known) {
    case .granted(let rights):
      call.grant(rights)
      answer(call, handler)
    case .denied(let missing): call.fail(.permissionDenied(missing: missing))
    case .needsLookup:
      if let device = drivenDevice(of: call) {
        call.rights = Rights(devices: [device: .drive])
        return answer(call, handler)
      }
      guard let peer = call.peer else { return call.fail(.permissionDenied()) }
      let generation = accessGeneration
      authorize(right, on: scope, for: peer) { [weak self] decision in
        call.resume {
          guard let self, call.isAlive else { return }
          // The rules may have changed while the lookup ran.
          if generation != self.accessGeneration {
            self.calls -= 1
            return self.answer(call)
          }
          switch decision {
          case .granted(let rights):
            call.grant(rights, cached: self.access.usesPolkit)
            self.answer(call, handler)
          case .denied(let missing): call.fail(.permissionDenied(missing: missing))
          case .needsLookup: call.fail(.permissionDenied())
          }
        }
      }
    }
  }

  private func answer(_ call: Call, _ handler: Handler) {
    do {
      try handler.run(self)(call)
    } catch let error as ContractError {
      call.fail(error)
    } catch {
      call.fail(.deviceError(device: "", code: .internal, message: "\(error)"))
    }
  }

  private func unknown(_ method: String) -> ContractError {
    let interface = String(method.prefix(upTo: method.lastIndex(of: ".") ?? method.startIndex))
    return Interface.all.contains { $0.name == interface } ? .methodNotFound(method: method) : .interfaceNotFound(interface: interface)
  }

  // MARK: org.varlink.service

  private func getInfo(_ call: Call) throws {
    _ = try call.request.parameters(as: NoParameters.self)
    call.reply(
      VarlinkService.GetInfo.Result(
        vendor: "vehicled", product: "vehicled", version: Protocols.version, url: "",
        interfaces: Interface.all.map(\.name)))
  }

  private func getInterfaceDescription(_ call: Call) throws {
    let name = try call.request.parameters(as: VarlinkService.GetInterfaceDescription.Parameters.self).interface
    guard let interface = Interface.all.first(where: { $0.name == name }) else { throw ContractError.interfaceNotFound(interface: name) }
    call.reply(VarlinkService.GetInterfaceDescription.Result(description: interface.text))
  }

  // MARK: Reading

  private func status(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Status.Parameters.self)
    call.reply(Contract.Status.Result(devices: try states(of: parameters.device, for: call).map { $0.device() }))
  }

  private func describe(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Describe.Parameters.self)
    call.reply(Contract.Describe.Result(schemas: try states(of: parameters.device, for: call).map(\.contractSchema)))
  }

  private func get(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Get.Parameters.self)
    guard parameters.references.count <= Self.maxReferences else { throw ContractError.invalidParameter(parameter: "references") }
    let properties = try parameters.references.map { reference throws(ContractError) in try resolve(reference, for: call) }
    let boot = Clock.boot()
    var body: [UInt8] = []
    var message: [UInt8] = []
    ReadingWriter.list("readings", to: &body) { body in
      for property in properties {
        ReadingWriter.separate(&body)
        property.state.write(property.index, at: boot, to: &body)
      }
    }
    ReadingWriter.reply(body: body, to: &message)
    call.reply(encoded: message)
  }

  private func watch(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Watch.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    guard parameters.references?.count ?? 0 <= Self.maxReferences else { throw ContractError.invalidParameter(parameter: "references") }
    let interval = parameters.minimumIntervalMilliseconds ?? 0
    guard Contract.Watch.intervals.contains(interval) else {
      throw ContractError.invalidParameter(parameter: "minimumIntervalMilliseconds")
    }
    call.isStream = true
    let watcher = Watcher(sink: call, interval: Int64(interval) * .millisecond)
    call.cancel = { [hub] in
      watcher.end()
      hub.unsubscribe(watcher)
    }
    call.hasRoomAgain = { watcher.drained() }
    for reference in parameters.references ?? [] { _ = try resolve(reference, for: call) }
    try hub.subscribe(watcher, to: parameters.references, of: call.rights.shown)
    guard parameters.references == nil else { return }
    call.continues = { [weak call, hub] rights in
      guard let before = call?.rights else { return false }
      if rights.shown == before.shown { return true }
      guard hub.states.allSatisfy({ !before.show($0.device.name) || rights.show($0.device.name) }) else { return false }
      hub.extend(watcher, to: rights.shown)
      return true
    }
  }

  private func scan(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Scan.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    guard [nil, "ble", "serial"].contains(parameters.transport) else { throw ContractError.invalidParameter(parameter: "transport") }
    let seconds = parameters.seconds ?? 3600
    guard (1...3600).contains(seconds) else { throw ContractError.invalidParameter(parameter: "seconds") }
    call.isStream = true
    DeviceScan.begin(call, transport: parameters.transport, seconds: seconds, blueZ: blueZ, kinds: registry)
  }

  private func diagnose(_ call: Call) throws {
    _ = try call.request.parameters(as: NoParameters.self)
    let doctor = Doctor(hub, blueZ, accounts, directory: directory) { [weak call] in call?.reply(Contract.Diagnose.Result(findings: $0)) }
    call.cancel = { doctor.cancel() }
    doctor.begin()
  }

  private func record(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Record.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    let device = try state(of: parameters.device, for: call).device
    call.isStream = true
    call.continue(Contract.Record.Result(line: Recording.text(device.recordingHeader)))
    // A recording with gaps cannot be replayed, so a client that falls behind gets an error instead.
    let subscription = device.monitor.add { [weak call] line in
      guard let call else { return }
      if call.hasRoom {
        call.continue(Contract.Record.Result(line: line))
      } else {
        call.cancel?()
        call.fail(.deviceError(device: parameters.device, code: .tooSlow, message: "recording ended: the client reads too slowly"))
      }
    } ended: { [weak call] in
      call?.fail(
        .deviceError(device: parameters.device, code: .removed, message: "recording ended: device reconfigured or removed; record again"))
    }
    call.cancel = { device.monitor.remove(subscription) }
  }

  // MARK: Controlling

  private func set(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Set.Parameters.self)
    let state = try state(of: parameters.device, for: call)
    guard let index = state.index(of: parameters.property) else {
      throw ContractError.noSuchProperty(device: parameters.device, property: parameters.property)
    }
    let property = state.schema.properties[index]
    guard property.access != .read else { throw ContractError.readOnly(device: parameters.device, property: property.name) }
    if property.access == .motion { try requireLease(parameters.lease, of: state.device, call) }
    let value: Value
    do { value = try property.rule.accept(parameters.value) } catch {
      throw ContractError.outOfRange(property: property.name, message: error.description)
    }
    perform(.set(property: index, value), on: state.device, for: call) { report in
      var reading = state.reading(index, at: Clock.boot())
      // For example `pending`, if the device receives the value later.
      if let remark = report.text { reading.reason = remark }
      call.reply(Contract.Set.Result(reading: reading))
    }
  }

  private func run(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Call.Parameters.self)
    let state = try state(of: parameters.device, for: call)
    guard let index = state.schema.actions.firstIndex(where: { $0.name == parameters.action }) else {
      throw ContractError.noSuchAction(device: parameters.device, action: parameters.action)
    }
    let action = state.schema.actions[index]
    if action.motion { try requireLease(parameters.lease, of: state.device, call) }
    let arguments = try action.accept(parameters.arguments ?? [:])
    if arguments["hold"] == .bool(true) {
      let message = "the held action has ended: the client closed or shut down its connection"
      call.endsWithInput = .deviceError(device: parameters.device, code: .inputClosed, message: message)
    }
    perform(.run(action: index, arguments: arguments), on: state.device, for: call) { report in
      call.reply(Contract.Call.Result(report))
    }
  }

  private func drive(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Drive.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    let device = try state(of: parameters.device, for: call).device
    let deadline = parameters.deadlineMilliseconds ?? Contract.Drive.defaultDeadline
    guard Contract.Drive.deadlines.contains(deadline) else { throw ContractError.invalidParameter(parameter: "deadlineMilliseconds") }
    guard device.schema.moves else {
      throw ContractError.deviceError(
        device: device.name, code: .noMotion,
        message: "the device has no motion controls; if its kind supports motion, set allow-motion = true")
    }
    if let failure = device.guardianUnavailableReason {
      throw ContractError.deviceError(device: device.name, code: .noGuardian, message: "\(failure); driving needs the guardian")
    }
    if let lease = device.lease { throw ContractError.busy(device: device.name, holder: lease.holder) }
    if let reason = device.unreachableReason { throw ContractError.notConnected(device: device.name, reason: reason) }
    let token = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
    call.isStream = true
    call.cancel = { device.endLease(token, "client disconnected") }
    call.endsWithInput = .leaseLost(device: device.name, reason: "client closed its connection")
    let peer = call.peer
    let nanoseconds = Int64(deadline) * .millisecond
    let lease = Device.Lease(
      token: token, user: peer?.user ?? 0, holder: peer.map { "\(accounts.name(of: $0.user)) (pid \($0.pid))" } ?? "unknown client",
      deadline: nanoseconds
    ) { [weak call] reason in
      call?.fail(.leaseLost(device: device.name, reason: reason))
    }
    call.continue(Contract.Drive.Result(lease: token, state: "driving"))
    device.grant(lease)
  }

  /// Checks that the caller holds the lease with this token, and binds the lease to the caller's connection.
  private func requireLease(_ token: String?, of device: Device, _ call: Call) throws(ContractError) {
    guard let token else { throw .leaseRequired(device: device.name) }
    guard let lease = device.lease, lease.token == token, lease.user == call.peer?.user else {
      throw .leaseLost(device: device.name, reason: device.lease.map { "\($0.holder) holds it" } ?? "the lease has ended")
    }
    // Queued set-points do not prove that the driver is still in control.
    guard Clock.monotonic() - call.arrived <= lease.deadline / 2 else {
      throw .deviceError(
        device: device.name, code: .expired, message: "set-point too old: it was queued behind others; send set-points one at a time")
    }
    guard call.bind(device, token) else { throw .leaseLost(device: device.name, reason: "client disconnected") }
  }

  private func connect(_ call: Call) throws {
    let device = try linked(call.request.parameters(as: Contract.Connect.Parameters.self).device, for: call)
    device.connect { Self.answer(call, device, failure: $0) }
  }

  private func disconnect(_ call: Call) throws {
    let device = try linked(call.request.parameters(as: Contract.Disconnect.Parameters.self).device, for: call)
    device.disconnect { Self.answer(call, device, failure: $0) }
  }

  /// Replies once the change is stored; if storing failed, the change lasts until the next restart.
  private static func answer(_ call: Call, _ device: Device, failure: String?) {
    guard let failure else { return call.reply(NoParameters()) }
    call.fail(
      .deviceError(device: device.name, code: .notStored, message: "not stored, so valid only until the daemon restarts: \(failure)"))
  }

  /// Returns the device, which must have a link.
  private func linked(_ name: String, for call: Call) throws(ContractError) -> Device {
    let device = try state(of: name, for: call).device
    if device.ports.isEmpty {
      throw .deviceError(device: name, code: .noLink, message: "the device has no link to connect or disconnect")
    }
    return device
  }

  private func reloadConfiguration(_ call: Call) throws {
    _ = try call.request.parameters(as: NoParameters.self)
    call.reply(try reload().get())
  }

  /// Passes a command to the device and its result to the caller; cancels the command if the caller disconnects.
  private func perform(_ command: Command, on device: Device, for call: Call, succeeded: @escaping @Loop (Report) -> Void) {
    var finished = false
    let id = device.perform(command) { report in
      if call.request.more { call.continue(Contract.Call.Result(report)) }
    } finish: { result in
      finished = true
      switch result {
      case .success(let report): succeeded(report)
      case .failure(let error): call.fail(ContractError(error, device: device.name))
      }
    }
    if !finished { call.cancel = { device.cancel(id) } }
  }
}

extension Action {
  /// Returns the arguments in their declared types. Throws if one is unknown, missing or invalid.
  fileprivate func accept(_ given: [String: Value]) throws(ContractError) -> [String: Value] {
    var accepted: [String: Value] = [:]
    for name in given.keys.sorted() where !arguments.contains(where: { $0.name == name }) {
      throw .invalidParameter(parameter: "arguments.\(name)")
    }
    for argument in arguments {
      guard let value = given[argument.name] else {
        if argument.optional { continue }
        throw .invalidParameter(parameter: "arguments.\(argument.name)")
      }
      do { accepted[argument.name] = try ValueRule(argument.type).accept(value) } catch {
        // A secret argument is never echoed.
        let message = argument.secret ? "the value is not \(argument.type.article)" : error.description
        throw .outOfRange(property: argument.name, message: message)
      }
    }
    return accepted
  }
}

extension ContractError {
  /// The error for a device's failed command.
  fileprivate init(_ error: CommandError, device: String) {
    switch error {
    case .notConnected(let reason): self = .notConnected(device: device, reason: reason)
    case .timeout(let milliseconds): self = .timeout(device: device, milliseconds: milliseconds)
    case .invalid(let argument, let message): self = .outOfRange(property: argument, message: message)
    case .refused(let code, let message): self = .deviceError(device: device, code: code, message: message)
    }
  }
}
