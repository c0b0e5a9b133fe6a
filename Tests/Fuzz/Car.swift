// Fuzzes the RC car's machine with an arbitrary car, clients, leases and stored values. Each send is one frame that the car can parse;
// the frame after the end of a lease is Stop, and no tilt is sent without a lease; the schema only grows, and the buffers and queues are
// bounded. Built together with Sources/Protocols as one module, outside the package.

private struct CarFuzzSession: FuzzSession {
  static let firstStep: UInt8 = 0xC0
  static var steps: [FuzzStep<Self>] {
    linkSteps + [
      .withArgument { $0.command($1) }, .cancel, .completeSend, .acquireLease,
      .step { if $0.state.hasLease { $0.releaseLease() } }, .withArgument { $0.video($1) }, .restore, .escape,
      .withArgument { $0.message($1) }, .withArgument { $0.tilt($1) }, .step { $0.run(.stop) },
    ]
  }
  static let maxStringLength = 2000
  static let storedKeys = ["neutral", "sensitivity", "web-page", "video-quality"]

  var state: FuzzState<CarMachine>
  /// The schema before the effects that are not checked yet.
  private var schema: Schema
  /// The lease has ended, so the next frame must be Stop.
  private var mustStop = false
  /// The lease was held before the input.
  private var hadLease = false

  init(options: UInt8) {
    var values: [String: Value] = ["status-interval": .float([0, 1, 30, 3600][Int(options & 3)])]
    if options & 4 != 0 { values["dialect"] = .string("documented") }
    if options & 8 != 0 { values["tilt-rate"] = .float(20) }
    if options & 16 != 0 { values["allow-messages"] = .bool(true) }
    let machine = CarMachine(Setup(options: values, links: options & 32 != 0 ? [:] : [.main: "tcp:car:12345"]))
    state = FuzzState(machine)
    schema = machine.schema
  }

  mutating func prepare(for input: Input) {
    hadLease = state.hasLease
    switch input {
    case .linkChanged(.main, _): mustStop = false
    case .leaseEnded: mustStop = state.isConnected
    default: break
    }
  }

  mutating func check(_ effect: Effect) {
    switch effect {
    case .send(.main, let bytes, _, _), .sendUnlessBacklogged(_, let bytes, _, _): checkFrame(bytes)
    case .resetLink: mustStop = false
    case .leaseLost: if hadLease, state.isConnected { mustStop = true }
    case .declare(let new):
      require(new.properties.starts(with: schema.properties), "a declared property is removed")
      schema = new
    case .event(_, let text): require(text.utf8.count <= 4000, "the text of an event is too long")
    default: break
    }
  }

  private mutating func checkFrame(_ bytes: [UInt8]) {
    require(bytes.count <= CarFrame.maxLength, "the frame is longer than the car can parse")
    var decoder = CarDecoder()
    var rest = bytes[...]
    guard case .message(let message)? = decoder.next(&rest), rest.allSatisfy({ $0 == carriageReturn || $0 == lineFeed }) else {
      fatalError("the send is not one frame: \(printable(bytes))")
    }
    require(!mustStop || message.type == "Stop", "\(message.type) before Stop")
    if message.type == "Stop" { mustStop = false }
    if message.type == "Gyro" { checkTilt(message) }
  }

  /// The car misinterprets a tilt if roll and pitch are both negative, and a negative zero.
  private func checkTilt(_ message: CarInboundMessage) {
    require(state.hasLease, "tilt without a lease")
    let angles = String(decoding: message.body, as: UTF8.self).split(separator: ";").map(\.trimmed)
    require(angles.count == 3, "a tilt has three angles, not \(angles.count)")
    require(!(angles[0].hasPrefix("-") && angles[1].hasPrefix("-")), "roll and pitch are both negative")
    require(!angles.contains("-0.000000"), "negative zero")
  }

  func checkMachine() {
    // The daemon applies a declaration before the readings of the same turn.
    require(schema.properties.count == state.machine.schema.properties.count, "a new property is not declared")
    require(state.machine.router.reader.bufferedCount <= CarDecoder.limit, "unbounded buffer of the reader")
    require(state.machine.router.motion.sender.queue.commands.count <= CarSendQueue.maxCommands + 4, "unbounded send queue")
    require(state.machine.schema.properties.count <= CarProperty.allCases.count + 32, "unbounded schema")
    require(state.machine.router.motion.driving.isLeaseHeld == state.hasLease, "machine and device disagree on the lease")
  }

  mutating func connect() {
    if state.isConnected { disconnect() }
    give(.linkChanged(.main, .up(maximumSend: nil)))
  }

  private mutating func video(_ argument: UInt8) {
    switch argument % 4 {
    case 0: give(.linkChanged(.video, .up(maximumSend: nil)))
    case 1: give(.linkChanged(.video, .down("closed by the peer")))
    case 2: give(.received(.video, Array("HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n\r\n".utf8) + [0xFF, 0xD8, 0xFF, 0xD9]))
    default: give(.received(.video, state.takePending()))
    }
  }

  /// Delivers a valid frame with the pending bytes as its body.
  private mutating func message(_ argument: UInt8) {
    let types = [
      "Gyro", "Modes", "Status", "InfoModes", "Message", "ButtonsOn", "ButtonsOff", "GyroStop", "ConnectionTest", "ConnectionTestStop",
    ]
    let type = types[Int(argument) % types.count]
    give(.received(.main, Array("\(type)#$#".utf8) + state.takePending() + Array("%^%".utf8)))
  }

  private mutating func tilt(_ argument: UInt8) {
    let angles: [Double] = [0, -0.0, 0.4, -0.4, -1e-7, 1.5, -1.5, .nan]
    run(.tilt, ["roll": .float(angles[Int(argument & 7)]), "pitch": .float(angles[Int(argument >> 3 & 7)])])
  }

  private mutating func set(_ property: CarProperty, _ value: Value) { perform(.set(property: property.rawValue, value)) }
  private mutating func run(_ action: CarAction, _ arguments: [String: Value] = [:]) {
    perform(.run(action: action.rawValue, arguments: arguments))
  }

  private mutating func command(_ argument: UInt8) {
    let text = String(decoding: state.pending.prefix(1200), as: UTF8.self)
    switch argument & 31 {
    case 0: set(.mode, .string(String(argument >> 5 + 2)))
    case 1: set(.mode, .string(text))
    case 2: set(.leftButton, .bool(argument & 32 != 0))
    case 3: set(.rightButton, .bool(argument & 32 != 0))
    case 4: set(.video, .bool(true))
    case 5: set(.video, .bool(false))
    case 6: set(.sensitivity, .float(Double(argument) / 100))
    case 7: set(.neutralRoll, .float(Double(argument) / 50 - 2))
    case 8: set(.webPage, .string(text))
    case 9: set(.videoQuality, .string(["low", "medium", "high", text][Int(argument >> 6)]))
    case 10: run(.proceed)
    case 11: run(.modeInfo)
    case 12: run(.modeInfo, ["mode": .string(text)])
    case 13: run(.refresh)
    case 14: run(.neutral, ["position": .string(argument & 32 != 0 ? "here" : "horizontal")])
    case 15: run(.sendMessage, ["text": .string(text)])
    case 16: run(.shutDown)
    case 17: set(.mode, .string("3"))
    case 18: set(.mode, .string("1"))
    case 19: give(.stopping)
    default: completeStores(failure: argument & 32 != 0 ? "no space" : nil)
    }
  }

  mutating func shutDown() {
    for _ in 0..<12 {
      completeSend()
      wake()
    }
    disconnect()
    for key in Self.storedKeys { for _ in 0..<40 { give(.stored(key: key, failure: nil)) } }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt { CarFuzzSession.run(start, count) }
