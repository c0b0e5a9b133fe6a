// A car machine in virtual time, with a link that records every write, and a car that sends what the test specifies.

import MachineTesting

@testable import Protocols

typealias CarRig = Host<CarMachine, CarLink>

struct CarLink: LinkedSurroundings {
  /// Whether the car responds to requests for its modes, after its first message.
  var respondsToModes = true
  var modesResponse = CarVector.modes
  fileprivate var hasSentMessage = false
  /// Whether the link accepts writes at once.
  var acceptsWrites = true
  /// Why the link fails writes; nil: it accepts them.
  var failure: String?
  /// Why the link fails tilts; nil: it accepts them.
  var tiltFailure: String?
  private(set) var isUp = false
  /// The frames that were written to the car.
  private(set) var writes: [(at: Instant, text: String)] = []
  /// The requests to the camera's server, and the links that were opened and closed.
  private(set) var requests: [String] = []
  private(set) var links: [String] = []
  /// The limit of unacknowledged bytes of each tilt.
  private(set) var maxUnacknowledged: [Int] = []
  fileprivate(set) var outstanding: SendID?

  var tilts: [String] { writes.filter { $0.text.hasPrefix("Gyro") }.map { String($0.text.dropFirst(7).prefix { $0 != "%" }) } }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: nil), at: now) }

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state { (isUp, outstanding, hasSentMessage) = (true, nil, false) } else { isUp = false }
    return [.linkChanged(.main, state)]
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(.main, let bytes, let id, _): return write(bytes, id, failure, at: now)
    case .sendUnlessBacklogged(_, let bytes, let id, let most):
      self.maxUnacknowledged.append(most)
      return write(bytes, id, tiltFailure ?? failure, at: now)
    case .send(_, let bytes, _, _): requests.append(String(decoding: bytes, as: UTF8.self))
    case .openLink(_, let url): links.append("open \(url)")
    case .closeLink(let link):
      links.append("close")
      return [.linkChanged(link, .down("closed by the device"))]
    case .resetLink(_, let reason): return change(.down(reason), at: now)
    default: return nil
    }
    return []
  }

  private mutating func write(_ bytes: [UInt8], _ id: SendID?, _ failure: String?, at now: Instant) -> [Input] {
    precondition(isUp && outstanding == nil, "a write over a link that is down or busy")
    precondition(bytes.count <= CarFrame.maxLength, "a frame that the car cannot read at once")
    if failure == nil { writes.append((now, String(decoding: bytes, as: UTF8.self))) }
    guard let id else { return [] }
    if !acceptsWrites { outstanding = id }
    let isModesRequest = CarDialect.allCases.contains { bytes == CarOutboundMessage.modes.frame($0) }
    let getsResponse = respondsToModes && failure == nil && hasSentMessage && isModesRequest
    return (acceptsWrites ? [.sent(id, failure: failure)] : []) + (getsResponse ? [.received(.main, Array(modesResponse.utf8))] : [])
  }
}

extension CarRig {
  init(_ options: [String: Value] = [:], link: String? = "tcp:car.local:12345", at now: Instant = 0) {
    self.init(CarMachine(Setup(options: options, links: link.map { [.main: $0] } ?? [:])), CarLink(), now: now)
  }

  /// A connected car that has requested tilt and reported its modes, one second after its first message.
  /// If it reports no modes, they are not requested while it is driven, and the tilts are not interrupted.
  static func ready(
    _ options: [String: Value] = ["status-interval": .float(0)], link: String? = "tcp:car.local:12345", reportsModes: Bool = true
  ) -> CarRig {
    var rig = CarRig(options, link: link)
    rig.respondsToModes = reportsModes
    rig.start()
    rig.run(for: 500 * .millisecond)
    // It sends its modes twice without a request, and then in response to one.
    rig.receive(CarVector.gyro + (reportsModes ? CarVector.modes : ""))
    rig.run(for: 200 * .millisecond)
    if reportsModes { rig.receive(CarVector.modes + CarVector.modes) }
    rig.run(for: 300 * .millisecond)
    return rig
  }

  /// The same, driven straight ahead at the car's rate for this time.
  static func driving(
    _ options: [String: Value] = ["status-interval": .float(0)], mode: Int? = nil, for time: Nanoseconds = 800 * .millisecond,
    reportsModes: Bool = true
  ) -> CarRig {
    var rig = ready(options, reportsModes: reportsModes)
    if let mode {
      rig.set("mode", .string(String(mode)))
      rig.run(for: .second)
    }
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: time)
    return rig
  }

  mutating func receive(_ text: String) {
    surroundings.hasSentMessage = true
    give(.received(.main, Array(text.utf8)))
    run(for: 0)
  }

  /// The link accepts the write in flight, and later ones.
  mutating func restoreWrites() {
    surroundings.acceptsWrites = true
    guard let id = surroundings.outstanding else { return }
    surroundings.outstanding = nil
    give(.sent(id, failure: nil))
  }

  var lastWills: [LastWill] { wills.compactMap(\.self) }

  /// The types of the frames since `start`.
  func types(since start: Instant = .min) -> [String] {
    surroundings.writes.filter { $0.at >= start }.map { String($0.text.prefix { $0 != "#" }) }
  }
  func messages(since start: Instant = .min) -> [String] {
    surroundings.writes.filter { $0.at >= start && !$0.text.hasPrefix("Gyro") }.map { String($0.text.split(separator: "%")[0]) }
  }
  func times(since start: Instant, _ type: String) -> [Int64] {
    surroundings.writes.filter { $0.at >= start && $0.text.hasPrefix(type) }.map { ($0.at - start) / .millisecond }
  }
}

extension Host where Subject == CarMachine {
  @discardableResult mutating func act(_ action: CarAction, _ arguments: [String: Value] = [:]) -> CommandID {
    perform(.run(action: action.rawValue, arguments: arguments))
  }

  @discardableResult mutating func tilt(_ roll: Double, _ pitch: Double, _ yaw: Double? = nil) -> CommandID {
    var arguments: [String: Value] = ["roll": .float(roll), "pitch": .float(pitch)]
    arguments["yaw"] = yaw.map(Value.float)
    return act(.tilt, arguments)
  }

  /// Tilts 60 times a second.
  mutating func drive(_ roll: Double = 0.4, _ pitch: Double = 0.2, for time: Nanoseconds) {
    for _ in 0..<(time * 60 / .second) {
      tilt(roll, pitch)
      run(for: .second / 60)
    }
  }
}

/// Frames of the original program.
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
