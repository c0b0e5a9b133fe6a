// One short function per method of the socket. What a device can do is not known here: it comes from the tables that the
// machines declare.

import Glibc
import Protocols

@Loop final class Methods {
  /// How many references one call may name.
  private static let maxReferences = 1024
  let board: Board
  private let blueZ: BlueZ
  /// Where what is kept lies.
  private let directory: String
  let admission: Admission
  let scheduler = CallScheduler()
  /// How many were made.
  private(set) var calls = 0
  /// What was granted before counts no more when it changes.
  var access: Access {
    didSet {
      accessGeneration += 1
      reviewAccess()
    }
  }
  private(set) var accessGeneration = 0
  let accounts: Accounts
  let polkit = Polkit(SystemBus())
  /// Reads the configuration again and gives what changed; set by the daemon.
  var reload: @Loop () -> Result<[String], ContractError> = { .success([]) }

  init(board: Board, access: Access, blueZ: BlueZ, directory: String, accounts: Accounts = Accounts(), admission: Admission = Admission()) {
    self.accounts = accounts
    self.admission = admission
    self.board = board
    self.directory = directory
    self.blueZ = blueZ
    self.access = access
    accounts.changed = { [weak self] in self?.reviewAccounts() }
  }

  /// What a method needs its caller to be allowed to, and what it does.
  typealias Handler = (right: Right?, run: @Loop (Methods) -> (Call) throws -> Void)

  /// The handlers by method name; a test holds them against the interface's text.
  static let handlers: [String: Handler] = [
    VarlinkService.GetInfo.name: (nil, getInfo),
    VarlinkService.GetInterfaceDescription.name: (nil, getInterfaceDescription),
    Contract.Status.name: (.observe, status),
    Contract.Describe.name: (.observe, describe),
    Contract.Get.name: (.observe, get),
    Contract.Set.name: (.control, set),
    Contract.Call.name: (.control, run),
    Contract.Watch.name: (.observe, watch),
    Contract.Drive.name: (.control, drive),
    Contract.Scan.name: (.control, scan),
    Contract.Diagnose.name: (.observe, diagnose),
    Contract.Statistics.name: (.observe, statistics),
    Contract.Record.name: (.observe, record),
    Contract.Connect.name: (.control, connect),
    Contract.Disconnect.name: (.control, disconnect),
    Contract.Reload.name: (.control, reloadConfiguration),
    Contract.LogLevel.name: (.control, logLevel),
  ]

  func answer(_ call: Call) {
    calls += 1
    guard let handler = Self.handlers[call.call.method] else { return call.fail(unknown(call.call.method)) }
    guard let right = handler.right else { return answer(call, handler) }
    call.right = right
    if call.has(right) { return answer(call, handler) }
    switch access.decide(right, for: call.peer, accounts.known) {
    case .granted:
      call.grant()
      answer(call, handler)
    case .denied(let missing): call.fail(.permissionDenied(missing: missing))
    case .ask where drives(call): answer(call, handler)
    case .ask:
      guard let peer = call.peer else { return call.fail(.permissionDenied()) }
      let generation = accessGeneration
      ask(right, of: peer) { [weak self] refusal in
        call.goOn {
          guard let self, call.isAlive else { return }
          // Whoever decides now may be another.
          if generation != self.accessGeneration {
            self.calls -= 1
            return self.answer(call)
          }
          if let refusal { return call.fail(.permissionDenied(missing: refusal)) }
          call.grant(self.access.asksPolkit ? right : nil)
          self.answer(call, handler)
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
      call.fail(.deviceError(device: "", code: "internal", message: "\(error)"))
    }
  }

  private func unknown(_ method: String) -> ContractError {
    let interface = String(method.prefix(upTo: method.lastIndex(of: ".") ?? method.startIndex))
    return Interface.all.contains { $0.name == interface } ? .methodNotFound(method: method) : .interfaceNotFound(interface: interface)
  }

  // MARK: The service

  private func getInfo(_ call: Call) throws {
    _ = try call.call.parameters(as: NoParameters.self)
    call.reply(
      VarlinkService.GetInfo.Result(
        vendor: "vehicled", product: "vehicled", version: Protocols.version, url: "",
        interfaces: Interface.all.map(\.name)))
  }

  private func getInterfaceDescription(_ call: Call) throws {
    let name = try call.call.parameters(as: VarlinkService.GetInterfaceDescription.Parameters.self).interface
    guard let interface = Interface.all.first(where: { $0.name == name }) else { throw ContractError.interfaceNotFound(interface: name) }
    call.reply(VarlinkService.GetInterfaceDescription.Result(description: interface.text))
  }

  // MARK: Looking

  private func status(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Status.Parameters.self)
    call.reply(Contract.Status.Result(devices: try board.states(of: wanted.device).map { $0.device() }))
  }

  private func describe(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Describe.Parameters.self)
    call.reply(Contract.Describe.Result(schemas: try board.states(of: wanted.device).map(\.contractSchema)))
  }

  private func get(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Get.Parameters.self)
    guard wanted.references.count <= Self.maxReferences else { throw ContractError.invalidParameter(parameter: "references") }
    let places = try wanted.references.map { reference throws(ContractError) in try board.resolve(reference) }
    let boot = Clock.boot()
    var body: [UInt8] = []
    var message: [UInt8] = []
    ReadingWriter.list("readings", to: &body) { body in
      for place in places {
        ReadingWriter.separate(&body)
        place.state.write(place.index, at: boot, to: &body)
      }
    }
    ReadingWriter.reply(body: body, to: &message)
    call.reply(encoded: message)
  }

  private func watch(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Watch.Parameters.self)
    guard call.call.more else { throw ContractError.expectedMore }
    guard wanted.references?.count ?? 0 <= Self.maxReferences else { throw ContractError.invalidParameter(parameter: "references") }
    let interval = wanted.minimumIntervalMilliseconds ?? 0
    guard Contract.Watch.intervals.contains(interval) else {
      throw ContractError.invalidParameter(parameter: "minimumIntervalMilliseconds")
    }
    call.lasts = true
    let watcher = Watcher(sink: call, interval: Int64(interval) * .millisecond)
    call.cancel = { [board] in
      watcher.end()
      board.unsubscribe(watcher)
    }
    call.hasRoomAgain = { watcher.drained() }
    try board.subscribe(watcher, to: wanted.references)
  }

  private func scan(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Scan.Parameters.self)
    guard call.call.more else { throw ContractError.expectedMore }
    guard [nil, "ble", "serial"].contains(wanted.transport) else { throw ContractError.invalidParameter(parameter: "transport") }
    let seconds = wanted.seconds ?? 3600
    guard (1...3600).contains(seconds) else { throw ContractError.invalidParameter(parameter: "seconds") }
    call.lasts = true
    Search.begin(call, transport: wanted.transport, seconds: seconds, blueZ: blueZ, kinds: registry)
  }

  private func diagnose(_ call: Call) throws {
    _ = try call.call.parameters(as: NoParameters.self)
    let doctor = Doctor(board, blueZ, accounts, directory: directory) { [weak call] in call?.reply(Contract.Diagnose.Result(findings: $0)) }
    call.cancel = { doctor.cancel() }
    doctor.begin()
  }

  private func record(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Record.Parameters.self)
    guard call.call.more else { throw ContractError.expectedMore }
    let device = try board.state(of: wanted.device).device
    call.lasts = true
    call.continue(Contract.Record.Result(line: Recording.text(device.recordingHeader)))
    // A recording with holes is worse than none: a client that falls behind is told so and let go.
    let tap = device.taps.add { [weak call] line in
      guard let call else { return }
      if call.hasRoom {
        call.continue(Contract.Record.Result(line: line))
      } else {
        call.cancel?()
        call.fail(.deviceError(device: wanted.device, code: "too-slow", message: "the recording is not read fast enough"))
      }
    } ended: { [weak call] in
      call?.fail(.deviceError(device: wanted.device, code: "removed", message: "configured no longer, or anew: record again"))
    }
    call.cancel = { device.taps.remove(tap) }
  }

  // MARK: Doing

  private func set(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Set.Parameters.self)
    let state = try board.state(of: wanted.device)
    guard let index = state.index(of: wanted.property) else {
      throw ContractError.noSuchProperty(device: wanted.device, property: wanted.property)
    }
    let property = state.schema.properties[index]
    guard property.access != .read else { throw ContractError.readOnly(device: wanted.device, property: property.name) }
    if property.access == .motion { try holdsLease(wanted.lease, of: state.device, call) }
    let value: Value
    do { value = try property.rule.accept(wanted.value) } catch {
      throw ContractError.outOfRange(property: property.name, message: error.description)
    }
    perform(.set(property: index, value), on: state.device, for: call) { report in
      var reading = state.reading(index, at: Clock.boot())
      // What is to be known of it: `pending`, where the device gets it later.
      if let remark = report.text { reading.reason = remark }
      call.reply(Contract.Set.Result(reading: reading))
    }
  }

  private func run(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Call.Parameters.self)
    let state = try board.state(of: wanted.device)
    guard let index = state.schema.actions.firstIndex(where: { $0.name == wanted.action }) else {
      throw ContractError.noSuchAction(device: wanted.device, action: wanted.action)
    }
    let action = state.schema.actions[index]
    if action.motion { try holdsLease(wanted.lease, of: state.device, call) }
    let arguments = try action.accept(wanted.arguments ?? [:])
    if arguments["hold"] == .bool(true) {
      let message = "a held action ends when its connection is closed or shut down"
      call.endsWithInput = .deviceError(device: wanted.device, code: "input-closed", message: message)
    }
    perform(.run(action: index, arguments: arguments), on: state.device, for: call) { report in
      call.reply(Contract.Call.Result(report))
    }
  }

  private func drive(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.Drive.Parameters.self)
    guard call.call.more else { throw ContractError.expectedMore }
    let device = try board.state(of: wanted.device).device
    let deadline = wanted.deadlineMilliseconds ?? Contract.Drive.usualDeadline
    guard Contract.Drive.deadlines.contains(deadline) else { throw ContractError.invalidParameter(parameter: "deadlineMilliseconds") }
    guard device.schema.moves else {
      throw ContractError.deviceError(
        device: device.name, code: "no-motion", message: "nothing of it can be driven; a kind that can move needs allow-motion = true")
    }
    if let trouble = device.equipment.guardian.trouble {
      throw ContractError.deviceError(device: device.name, code: "no-guardian", message: "\(trouble); nothing is driven without one")
    }
    if let lease = device.lease { throw ContractError.busy(device: device.name, holder: lease.holder) }
    if let reason = device.reasonDown { throw ContractError.notConnected(device: device.name, reason: reason) }
    let token = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
    call.lasts = true
    call.cancel = { device.endLease(token, "the driver is gone") }
    call.endsWithInput = .leaseLost(device: device.name, reason: "the driver has hung up")
    let peer = call.peer
    let nanoseconds = Int64(deadline) * .millisecond
    let lease = Device.Lease(
      token: token, user: peer?.user ?? 0, holder: peer.map { "\(accounts.name(of: $0.user)) (pid \($0.pid))" } ?? "somebody",
      deadline: nanoseconds
    ) { [weak call] reason in
      call?.fail(.leaseLost(device: device.name, reason: reason))
    }
    call.continue(Contract.Drive.Result(lease: token, state: "driving"))
    device.begin(lease)
  }

  /// Whether the caller drives the device, under the lease that it names. Its connection is one of the driver's then.
  private func holdsLease(_ token: String?, of device: Device, _ call: Call) throws(ContractError) {
    guard let token else { throw .leaseRequired(device: device.name) }
    guard let lease = device.lease, lease.token == token, lease.user == call.peer?.user else {
      throw .leaseLost(device: device.name, reason: device.lease.map { "\($0.holder) has it" } ?? "it has ended")
    }
    // A queue of old set-points is no hand at the handle.
    guard Clock.monotonic() - call.arrived <= lease.deadline / 2 else {
      throw .deviceError(
        device: device.name, code: "expired", message: "the set-point waited for others before it; send them as they are due")
    }
    guard call.bind(device, token) else { throw .leaseLost(device: device.name, reason: "the driver is gone") }
  }

  private func connect(_ call: Call) throws {
    let device = try linked(call.call.parameters(as: Contract.Connect.Parameters.self).device)
    device.connect { Self.answer(call, device, failure: $0) }
  }

  private func disconnect(_ call: Call) throws {
    let device = try linked(call.call.parameters(as: Contract.Disconnect.Parameters.self).device)
    device.disconnect { Self.answer(call, device, failure: $0) }
  }

  /// Done, and kept for the next start; or done, but not kept.
  private static func answer(_ call: Call, _ device: Device, failure: String?) {
    guard let failure else { return call.reply(NoParameters()) }
    call.fail(.deviceError(device: device.name, code: "not-stored", message: "done until the daemon is restarted: \(failure)"))
  }

  /// A device that has something to connect.
  private func linked(_ name: String) throws(ContractError) -> Device {
    let device = try board.state(of: name).device
    if device.ports.isEmpty { throw .deviceError(device: name, code: "no-link", message: "it has no link: there is nothing to connect") }
    return device
  }

  private func reloadConfiguration(_ call: Call) throws {
    _ = try call.call.parameters(as: NoParameters.self)
    call.reply(Contract.Reload.Result(changed: try reload().get()))
  }

  /// Gives the device a command and the caller its outcome; ends the command when the caller goes away.
  private func perform(_ command: Command, on device: Device, for call: Call, succeeded: @escaping @Loop (Report) -> Void) {
    var finished = false
    let id = device.perform(command) { report in
      if call.call.more { call.continue(Contract.Call.Result(report)) }
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
  /// The arguments in their declared types, or what is wrong with them.
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
        // What is secret is not said back, whatever it is.
        let words = argument.secret ? "it is not \(argument.type.article)" : error.description
        throw .outOfRange(property: argument.name, message: words)
      }
    }
    return accepted
  }
}

extension ContractError {
  /// What the socket says when a device's command failed.
  fileprivate init(_ error: CommandError, device: String) {
    switch error {
    case .notConnected(let reason): self = .notConnected(device: device, reason: reason)
    case .timeout(let milliseconds): self = .timeout(device: device, milliseconds: milliseconds)
    case .invalid(let argument, let message): self = .outOfRange(property: argument, message: message)
    case .refused(let code, let message): self = .deviceError(device: device, code: code, message: message)
    }
  }
}
