// The actions of the `obd` kind, and the queries that carry out most of them.

/// The actions, and the arguments that are used elsewhere.
enum OBDActions {
  static let all = [OBDQuery.action, codes, clear, rates, tune, frames, monitors, ecuCodes]
  static let codes = Action("dtc", help: "Read the trouble codes of all ECUs: stored, pending and permanent")
  static let clear = Action(
    "dtc-clear",
    arguments: [Argument(confirm, .bool, optional: true, help: "Clear the codes; without it, only show what would be lost")],
    help: "Show what clearing the trouble codes would erase, unless the vehicle moves; with confirm, store that data and clear the codes")
  static let rates = Action(
    "rates", help: "Show the target and actual rate of each request, its duration, and the properties that it reads")
  static let tune = Action(
    "tune", streams: true,
    help: "Measure how long the adapter must wait for responses, store the fastest setting that loses no response, and show the results")
  static let frames = Action(
    "freeze-frames", help: "Read the freeze frames: values from the time when each trouble code was stored (service 02)")
  static let monitors = Action(
    "monitors",
    help: "Read the malfunction indicator lamp (MIL), the readiness monitors and the on-board test results with their limits (service 06)")
  static let ecuCodes = Action(
    "ecu-codes",
    arguments: [
      Argument(UDSTroubleCodeQuery.argument, .string, optional: true, help: "Additional ECUs, by CAN identifier, such as 7B0 760")
    ],
    help: "Read trouble codes with their failure types over UDS (service 19 02), also from ECUs that are not emission-related")

  static let confirm = "confirm"

  static func action(of command: Command) throws(CommandError) -> (Action, [String: Value]) {
    guard case .run(let index, let arguments) = command, all.indices.contains(index) else {
      throw .refused(code: .readOnly, "an obd device has no writable properties; use query")
    }
    return (all[index], arguments)
  }
}

extension OBDQuery {
  /// Creates the query of an action. Throws if the arguments are invalid, the vehicle's protocol does not support the action, or trouble
  /// codes are already being cleared. `isResponding`: the vehicle responds to the daemon's own requests.
  init(
    _ id: CommandID, _ action: Action, _ arguments: [String: Value], _ vehicle: VehicleSession, _ clearingSequence: CodeClearingSequence,
    _ scales: Scales, _ motion: Motion, isResponding: Bool, allowRaw: Bool
  ) throws(CommandError) {
    let (bus, ecus) = (vehicle.bus, vehicle.polling.detection.ecus)
    switch action {
    case OBDActions.codes: self.init(id, TroubleCodeQuery(requiresResponse: bus.isCAN, isResponding: isResponding))
    case OBDActions.clear:
      let isConfirmed = arguments[OBDActions.confirm] == .bool(true)
      let preview = try clearingSequence.preview(
        isConfirmed: isConfirmed, motion, ecus: ecus.map(\.identifier), isResponding: isResponding)
      self.init(id, preview)
    case OBDActions.frames: self.init(id, FreezeFrameQuery(isCAN: bus.isCAN, scales: scales))
    case OBDActions.monitors: self.init(id, MonitorQuery(isCAN: bus.isCAN, isResponding: isResponding))
    case OBDActions.ecuCodes:
      self.init(
        id,
        try UDSTroubleCodeQuery(
          arguments, on: bus, ecus, polled: vehicle.polling.scheduler.queue.requests, fast: vehicle.polling.scheduler.fast.request.target,
          isResponding: isResponding))
    default: try self.init(id, arguments, allowRaw: allowRaw)
    }
  }
}
