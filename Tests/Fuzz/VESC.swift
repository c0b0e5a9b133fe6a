// Fuzzes the VESC machine with an arbitrary VESC, clients and leases. The motor gets no setpoint without a lease, and the buffers and
// queues are bounded. Built together with Sources/Protocols as one module, outside the package.

private struct VESCFuzzSession: FuzzSession {
  static let firstStep: UInt8 = 0xC0
  static var steps: [FuzzStep<Self>] {
    linkSteps + [
      .withArgument { $0.command($1) }, .cancel, .completeSend, .acquireLease, .step { $0.releaseLease() }, .step { $0.respond() },
      .restore, .escape,
    ]
  }
  static let maxStringLength = 64
  static let storedKeys = ["mode", "limits", "odometer"]

  var state: FuzzState<VESCMachine>

  init?(options: UInt8) {
    var values: [String: Value] = ["rate": .float([20, 50, 0.1, 7][Int(options & 3)])]
    if options & 4 != 0 { values["allow-motion"] = .bool(true) }
    if options & 8 != 0 { values["can-id"] = .int(3) }
    if options & 16 != 0 { values["wheel-diameter"] = .float(85) }
    if options & 32 != 0 { values["cells"] = .int(10) }
    let modes = [Setup.Subsection("eco", ["current": .float(50), "speed": .float(15)])]
    let setup = Setup(options: values, sections: ["mode": modes], phase: Double(options) / 256)
    guard let machine = try? VESCMachine(setup) else { return nil }
    state = FuzzState(machine)
  }

  mutating func check(_ effect: Effect) {
    guard case .send(_, let bytes, _, _) = effect else { return }
    let frame = bytes.dropFirst(2).dropLast(3)
    let payload = frame.first == VESCCommand.forwardCAN.rawValue ? frame.dropFirst(2) : frame
    let moves =
      switch payload.first.flatMap(VESCCommand.init) {
      case .setDuty, .setBrake, .setHandbrake: true
      // A current of 0 releases the motor.
      case .setCurrent: payload.dropFirst().contains { $0 != 0 }
      default: false
      }
    require(!moves || state.hasLease, "setpoint without a lease")
  }

  func checkMachine() {
    let (reader, queue) = (state.machine.router.session.reader, state.machine.router.requests.queue)
    require(reader.bufferedCount <= 2 * VESCFrame.maxLength, "unbounded buffer of the reader")
    require(queue.count <= VESCCommandQueue.limit + 1, "unbounded queue of commands")
  }

  /// Responds to the outstanding request: a valid frame with the pending bytes as its contents.
  private mutating func respond() {
    completeSend()
    guard let request = state.machine.router.session.request else { return }
    give(.received(.main, VESCFrame.enclosing([request.command.rawValue] + state.takePending().prefix(1000))))
  }

  private mutating func command(_ argument: UInt8) {
    switch argument % 8 {
    case 0: perform(.run(action: 0, arguments: [:]))
    case 1: perform(.set(property: VESCProperty.mode.rawValue, .string("eco")))
    case 2: perform(.set(property: VESCProperty.mode.rawValue, .string("full")))
    case 3:
      give(.stored(key: "limits", failure: argument > 8 ? "no space" : nil))
      perform(.run(action: 1, arguments: [:]))
    default:
      perform(.set(property: VESCProperty.targetCurrent.rawValue + Int(argument % 4), .float(Double(argument) / 7)))
    }
    if argument & 0x40 == 0 { completeStores() }
  }

  mutating func shutDown() {
    for _ in 0..<8 {
      completeSend()
      wake()
    }
    disconnect()
    give(.stored(key: "mode", failure: nil))
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt { VESCFuzzSession.run(start, count) }
