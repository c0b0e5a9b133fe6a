// A car machine in virtual time, with a link that keeps every write, a disk, and a car that says what the test has it say.

@testable import Protocols

struct CarRig {
  var machine: CarMachine
  var now: Instant
  /// The car answers when it is asked for its modes, once it has spoken at all.
  var answersModes = true
  var modesAnswer = CarVector.modes
  private var hasSpoken = false
  /// The link takes writes at once.
  var takesWrites = true
  /// Why the link takes none; nil: it does.
  var failure: String?
  /// Why a tilt is not taken.
  var behind: String?
  /// The disk answers at once.
  var keepsAtOnce = true
  private(set) var isUp = false
  /// What was written to the car, frame by frame.
  private(set) var writes: [(at: Instant, text: String)] = []
  /// What was written to the camera's server, and links that were opened and closed.
  private(set) var requests: [String] = []
  private(set) var links: [String] = []
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var progress: [(id: CommandID, report: Report)] = []
  private(set) var lost: [String] = []
  private(set) var events: [String] = []
  private(set) var notes: [String] = []
  private(set) var statuses: [String] = []
  private(set) var faults: [String?] = []
  private(set) var resets: [String] = []
  private(set) var wills: [LastWill] = []
  private(set) var most: [Int] = []
  private(set) var disk: [String: [UInt8]] = [:]
  private(set) var stoppedAt: Instant?
  private(set) var outstanding: SendID?
  private(set) var idleWakes = 0
  private var declared: Schema
  private var effects = Effects()
  private var lastCommand: CommandID = 0

  init(_ options: [String: Value] = [:], link: String? = "tcp:car.local:12345", at now: Instant = 0) {
    machine = CarMachine(Setup(options: options, links: link.map { [.main: $0] } ?? [:]))
    declared = machine.schema
    self.now = now
  }

  /// A car that has spoken: connected, asked for tilt, its modes told, one second into the session.
  /// One that tells no modes is not asked for them while somebody drives, and its tilts keep their rhythm.
  static func ready(
    _ options: [String: Value] = ["status-interval": .float(0)], link: String? = "tcp:car.local:12345", tellsModes: Bool = true
  ) -> CarRig {
    var rig = CarRig(options, link: link)
    rig.answersModes = tellsModes
    rig.start()
    rig.run(for: 500 * .millisecond)
    // It tells its modes unasked twice, and then because it was asked.
    rig.hear(CarVector.gyro + (tellsModes ? CarVector.modes : ""))
    rig.run(for: 200 * .millisecond)
    if tellsModes { rig.hear(CarVector.modes + CarVector.modes) }
    rig.run(for: 300 * .millisecond)
    return rig
  }

  /// And somebody drives it: straight ahead at the car's own rate, for so long.
  static func driving(
    _ options: [String: Value] = ["status-interval": .float(0)], mode: Int? = nil, for time: Nanoseconds = 800 * .millisecond,
    tellsModes: Bool = true
  ) -> CarRig {
    var rig = ready(options, tellsModes: tellsModes)
    if let mode {
      _ = rig.set("mode", .string(String(mode)))
      rig.run(for: .second)
    }
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: time)
    return rig
  }

  mutating func start(restored: [String: [UInt8]] = [:]) {
    disk = restored
    give(.started(restored: restored, wall: WallTime(microseconds: 0)))
    connect()
  }

  mutating func connect() {
    (isUp, outstanding, hasSpoken) = (true, nil, false)
    give(.linkChanged(.main, .up(maximumSend: nil)))
  }

  mutating func disconnect(_ reason: String = "the cable is out") {
    isUp = false
    give(.linkChanged(.main, .down(reason)))
  }

  mutating func hear(_ text: String) {
    hasSpoken = true
    give(.received(.main, Array(text.utf8)))
    run(for: 0)
  }

  mutating func give(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      // Readings go before declarations, as in the daemon.
      for reading in effects.readings where reading.property < declared.properties.count {
        values[declared.properties[reading.property].name] = reading.content
      }
      for effect in effects.list { note(effect, &inputs) }
    }
  }

  private mutating func note(_ effect: Effect, _ inputs: inout [Input]) {
    switch effect {
    case .send(.main, let bytes, let id, _): write(bytes, id, failure, &inputs)
    case .sendUnlessBehind(_, let bytes, let id, let most):
      self.most.append(most)
      write(bytes, id, behind ?? failure, &inputs)
    case .send(_, let bytes, _, _): requests.append(String(decoding: bytes, as: UTF8.self))
    case .openLink(_, let url): links.append("open \(url)")
    case .closeLink(let link):
      links.append("close")
      inputs.append(.linkChanged(link, .down("closed by the device")))
    case .complete(let id, let result): results[id, default: []].append(result)
    case .progress(let id, let report): progress.append((id, report))
    case .status(let word): statuses.append(word)
    case .fault(let words): faults.append(words)
    case .event(_, let text): events.append(text)
    case .note(let text): notes.append(text)
    case .lastWill(_, let will): if let will { wills.append(will) }
    case .resetLink(_, let reason):
      resets.append(reason)
      isUp = false
      inputs.append(.linkChanged(.main, .down(reason)))
    case .store(let key, let bytes):
      disk[key] = bytes.isEmpty ? nil : bytes
      if keepsAtOnce { inputs.append(.stored(key: key, failure: nil)) }
    case .leaseLost(let reason): lost.append(reason)
    case .declare(let schema): declared = schema
    case .stopped: stoppedAt = now
    default: break
    }
  }

  private mutating func write(_ bytes: [UInt8], _ id: SendID?, _ failure: String?, _ inputs: inout [Input]) {
    precondition(isUp && outstanding == nil, "a write over a link that is down or busy")
    precondition(bytes.count <= CarFrame.longest, "a frame that the car cannot read at once")
    if failure == nil { writes.append((now, String(decoding: bytes, as: UTF8.self))) }
    guard let id else { return }
    if takesWrites { inputs.append(.sent(id, failure: failure)) } else { outstanding = id }
    if answersModes, failure == nil, hasSpoken, CarDialect.allCases.contains(where: { bytes == CarOutboundMessage.modes.frame($0) }) {
      inputs.append(.received(.main, Array(modesAnswer.utf8)))
    }
  }

  /// The link takes what it holds, and what follows.
  mutating func restoreWrites() {
    takesWrites = true
    guard let id = outstanding else { return }
    outstanding = nil
    give(.sent(id, failure: nil))
  }

  /// Lets virtual time pass.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    while let wake = machine.nextWake, wake <= end {
      now = max(now, wake)
      give(.wake)
      if effects.isEmpty, machine.nextWake == wake {
        idleWakes += 1
        break
      }
    }
    now = end
  }

  /// Tilts 60 times a second.
  mutating func drive(_ roll: Double = 0.4, _ pitch: Double = 0.2, for time: Nanoseconds) {
    for _ in 0..<(time * 60 / .second) {
      _ = tilt(roll, pitch)
      run(for: .second / 60)
    }
  }

  // MARK: Commands

  mutating func tilt(_ roll: Double, _ pitch: Double, _ yaw: Double? = nil) -> CommandID {
    var arguments: [String: Value] = ["roll": .float(roll), "pitch": .float(pitch)]
    arguments["yaw"] = yaw.map(Value.float)
    return act(.tilt, arguments)
  }

  mutating func act(_ action: CarAction, _ arguments: [String: Value] = [:]) -> CommandID {
    lastCommand += 1
    give(.perform(lastCommand, .run(action: action.rawValue, arguments: arguments)))
    return lastCommand
  }

  mutating func set(_ name: String, _ value: Value) -> CommandID {
    lastCommand += 1
    if let property = machine.schema.properties.firstIndex(where: { $0.name == name }) {
      give(.perform(lastCommand, .set(property: property, value)))
    }
    return lastCommand
  }

  // MARK: What there is to see

  /// The types of the frames since a moment, and when they went out, in ms after it.
  func types(since start: Instant = .min) -> [String] {
    writes.filter { $0.at >= start }.map { String($0.text.prefix { $0 != "#" }) }
  }
  func words(since start: Instant = .min) -> [String] {
    writes.filter { $0.at >= start && !$0.text.hasPrefix("Gyro") }.map { String($0.text.split(separator: "%")[0]) }
  }
  func times(since start: Instant, _ type: String) -> [Int64] {
    writes.filter { $0.at >= start && $0.text.hasPrefix(type) }.map { ($0.at - start) / .millisecond }
  }
  var tilts: [String] { writes.filter { $0.text.hasPrefix("Gyro") }.map { String($0.text.dropFirst(7).prefix { $0 != "%" }) } }

  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }
  var word: String? { statuses.last }
  var fault: String? { faults.last ?? nil }

  func report(_ id: CommandID) -> Report? {
    guard results[id]?.count == 1, case .success(let report)? = results[id]?.first else { return nil }
    return report
  }
  func succeeded(_ id: CommandID) -> Bool { report(id) != nil }
  func error(_ id: CommandID) -> CommandError? {
    guard results[id]?.count == 1, case .failure(let error)? = results[id]?.first else { return nil }
    return error
  }
  func refusal(_ id: CommandID) -> String? { if case .refused(let code, _)? = error(id) { code.rawValue } else { nil } }
  func complaint(_ id: CommandID) -> String? {
    switch error(id) {
    case .refused(_, let words), .invalid(_, let words), .notConnected(let words): words
    default: nil
    }
  }
}

/// What goes over the wire, from the facts of the car.
enum CarVector {
  static let gyro = "Gyro#$#0.0166666666667%^%\r\n"
  static let modes =
    "Modes#$#Tilt Steering;Tilt, Lights;Tilt with AOA;Button Steering;Button with AOA;Follow line;Stop sign;Traffic light;"
    + "Speed limit;Tilt, Traffic rules, Light;Self steering%^%\r\n"
  static let status =
    "Status#$#Motor battery voltage: 7.41 V;Raspberry Pi's battery voltage: 5.02 V;Temperature: 48.3 C;CPU usage: 5.9 %;"
    + "Memory used: 612 MB;Free memory: 336 MB;Disk space used: 3.9 GB;Free disk space: 10 GB%^%\r\n"
  static let buttons = "ButtonsOn#$#%^%\r\nSpeechRecognitionOff#$#%^%\r\n"
  static let refresh = "VideoStreamRefresh#$#%^%\r\n"
  static let started = "VideoStreamStarted#$#%^%\r\n"
  static let warning = "Message#$#The CPU temperatur is over 80.000000 C.%^%\r\n"
  static let all = [gyro, modes, status, buttons, refresh, started, warning]
}
