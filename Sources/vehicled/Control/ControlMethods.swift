// The methods that change something: properties, actions, the motion lease, links and the configuration. Values and arguments are checked
// against the schema that the device's protocol state machine declares.

import Protocols
import Varlink

extension Methods {
  func set(_ call: Call) throws {
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

  func run(_ call: Call) throws {
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
      call.inputEndError = .deviceError(device: parameters.device, code: .inputClosed, message: message)
    }
    perform(.run(action: index, arguments: arguments), on: state.device, for: call) { report in
      call.reply(Contract.Call.Result(report))
    }
  }

  func drive(_ call: Call) throws {
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
    call.cancel = { device.releaseLease(token, "client disconnected") }
    call.inputEndError = .leaseLost(device: device.name, reason: "client closed its connection")
    let peer = call.peer
    let nanoseconds = Int64(deadline) * .millisecond
    let lease = Device.Lease(
      token: token, user: peer?.user ?? 0, holder: peer.map { "\(nameService.name(of: $0.user)) (pid \($0.pid))" } ?? "unknown client",
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
    // Queued setpoints do not prove that the driver is still in control.
    guard Clock.monotonic() - call.arrived <= lease.deadline / 2 else {
      throw .deviceError(
        device: device.name, code: .expired, message: "setpoint too old: it was queued behind others; send setpoints one at a time")
    }
    guard call.bind(device, token) else { throw .leaseLost(device: device.name, reason: "client disconnected") }
  }

  func connect(_ call: Call) throws {
    let device = try linkedDevice(call.request.parameters(as: Contract.Connect.Parameters.self).device, for: call)
    device.connect { Self.reply(to: call, device, failure: $0) }
  }

  func disconnect(_ call: Call) throws {
    let device = try linkedDevice(call.request.parameters(as: Contract.Disconnect.Parameters.self).device, for: call)
    device.disconnect { Self.reply(to: call, device, failure: $0) }
  }

  /// Replies once the change is stored; if storing failed, the change lasts until the next restart.
  private static func reply(to call: Call, _ device: Device, failure: String?) {
    guard let failure else { return call.reply(NoParameters()) }
    call.fail(
      .deviceError(device: device.name, code: .notStored, message: "not stored, so valid only until the daemon restarts: \(failure)"))
  }

  /// Returns the device, which must have a link.
  private func linkedDevice(_ name: String, for call: Call) throws(ContractError) -> Device {
    let device = try state(of: name, for: call).device
    if device.ports.isEmpty {
      throw .deviceError(device: name, code: .noLink, message: "the device has no link to connect or disconnect")
    }
    return device
  }

  func reloadConfiguration(_ call: Call) throws {
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
