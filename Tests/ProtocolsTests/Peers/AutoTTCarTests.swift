import Peers
import Protocols
import Testing

/// A client of the simulated car in virtual time: sends text as one read of the car, lets time pass, and records sent text,
/// events and motor speeds.
struct AutoTTCarHost {
  var car: AutoTTCar
  var now: Instant = 0
  private(set) var sent: [(at: Instant, text: String)] = []
  private(set) var events: [String] = []
  private(set) var resets: [LinkName] = []
  private(set) var video: [LinkName: [UInt8]] = [:]
  /// A video link that its client does not read.
  var unreadLink: LinkName?

  init(_ dialect: AutoTTCar.Dialect = .asBuilt, _ faults: String..., without: Set<CarFlaw> = []) throws {
    car = AutoTTCar(dialect, without: without, faults: try faults.map { try CarFault($0) })
    give(.started(restored: [:], wall: WallTime(microseconds: 0)))
  }

  /// A car that has sent its greeting, and has received Continue if `driving`.
  static func ready(
    _ dialect: AutoTTCar.Dialect = .asBuilt, _ faults: String..., without: Set<CarFlaw> = [], mode: Int? = nil, driving: Bool = false
  ) throws -> AutoTTCarHost {
    var host = try AutoTTCarHost(dialect, without: without)
    host.car = AutoTTCar(dialect, without: without, faults: try faults.map { try CarFault($0) })
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.pass(.second)
    if let mode {
      host.send("ChosenMode#$#\(mode)%^%\r\n")
      host.pass(3 * .second)
    }
    if driving { host.send("Continue#$#%^%\r\n") }
    host.forget()
    return host
  }

  /// Ahead, at 50.96 % on both sides.
  static let ahead = "Gyro#$# 0.400000; 0.000000; 0.000000%^%\r\n"

  mutating func forget() { (sent, events) = ([], []) }

  /// All sent text.
  var sentText: String { sent.map(\.text).joined() }
  /// The current motor speeds as text.
  var motors: String { car.motors.text }

  mutating func send(_ text: String, over link: LinkName = .main) { give(.received(link, Array(text.utf8))) }

  mutating func pass(_ time: Nanoseconds) {
    let end = now + time
    while let wake = car.nextWake, wake <= end {
      #expect(wake >= now, "no wake-up in the past")
      now = max(now, wake)
      give(.wake)
    }
    now = end
  }

  mutating func give(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      car.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(let link, let bytes, let id?, _):
          if link == .main { sent.append((now, String(decoding: bytes, as: UTF8.self))) } else { video[link, default: []] += bytes }
          if link != unreadLink { inputs.append(.sent(id, failure: nil)) }
        case .event(_, let text): events.append(text)
        case .resetLink(let link, _): resets.append(link)
        default: Issue.record("unexpected effect: \(effect)")
        }
      }
    }
  }
}

/// The simulated car behaves like the original: sessions, modes, and undetected disconnects.
@Suite struct AutoTTCarTests {
  private let modes =
    "Modes#$#Tilt Steering;Tilt, Lights;Tilt with AOA;Button Steering;Button with AOA;Follow line;Stop sign;Traffic light;Speed limit;Tilt, Traffic rules, Light;Self steering%^%\r\n"

  @Test func `it sends its greeting half a second after a client connects, and drops earlier bytes`() throws {
    var host = try AutoTTCarHost()
    #expect(host.car.isWaiting)
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.send("Modes#$#%^%\r\n")
    host.send("MainView#$#Entered%^%\r\n")
    host.pass(.second)
    #expect(!host.car.isWaiting && host.events.isEmpty)
    #expect(host.sent.map { $0.at / .millisecond } == [550, 560, 760])
    #expect(host.sent.map(\.text) == ["Gyro#$#0.0166666666667%^%\r\n", modes, modes])
    #expect(modes.utf8.count == 174)
    host.send("Modes#$#%^%\r\n")
    #expect(host.sent.last?.text == modes)
  }

  @Test func `replies have the original's form`() throws {
    var host = try AutoTTCarHost.ready()
    host.send("InfoModes#$#10%^%\r\n")
    host.send("InfoModes#$#-11%^%\r\n")
    #expect(host.sent.count == 2 && host.sent.allSatisfy { $0.text.hasPrefix("InfoModes#$#") && $0.text.hasSuffix(".%^%\r\n") })
    host.forget()
    host.send("InfoModes#$#11%^%\r\nModes#$#%^%\r\n")
    host.send("InfoModes#$#-12%^%\r\n")
    host.send("InfoModes#$#one%^%\r\n")
    #expect(host.sent.isEmpty)
    #expect(host.events.map { $0.prefix(22) } == ["exception IndexError i", "exception IndexError i", "exception ValueError i"])
    host.send("Status#$#%^%\r\n")
    #expect(host.sent.isEmpty, "top, df and free take a while")
    host.pass(.second)
    let items = host.sentText.dropFirst("Status#$#".count).dropLast("%^%\r\n".count).split(separator: ";")
    #expect(items.count == 8 && host.sentText.hasPrefix("Status#$#Motor battery voltage: 7.41 V;Raspberry Pi's battery voltage: 5.02 V;"))
    #expect(items.map { $0.split(separator: " ").last } == ["V", "V", "C", "%", "MB", "MB", "GB", "GB"])
  }

  @Test func `selecting a mode reports its features and does not stop the motors`() throws {
    for (index, chosen) in [
      ("Off", "Off"), ("On", "Off"), ("Off", "Off"), ("On", "Off"), ("On", "Off"), ("Off", "On"), ("On", "Off"), ("Off", "Off"),
      ("On", "Off"),
      ("On", "Off"), ("Off", "On"),
    ].enumerated() {
      var host = try AutoTTCarHost.ready(driving: true)
      host.send(AutoTTCarHost.ahead)
      host.send("ChosenMode#$#\(index)%^%\r\n")
      #expect(host.sentText == "Buttons\(chosen.0)#$#%^%\r\nSpeechRecognition\(chosen.1)#$#%^%\r\n" && host.sent.count == 1)
      #expect(host.car.mode == index && host.car.isStopped && host.motors == "50.96 50.96")
    }
    var host = try AutoTTCarHost.ready()
    for body in [" 1", "01", "11", "", "one"] { host.send("ChosenMode#$#\(body)%^%\r\n") }
    #expect(host.car.mode == 0 && host.sent.isEmpty)
  }

  /// The effect and the reply of Stop on a car that is moving when the mode is selected.
  @Test(arguments: 0...10) func `Stop stops the motors, except in modes 3 and 4`(_ mode: Int) throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.send("ChosenMode#$#\(mode)%^%\r\n")
    host.pass(3 * .second)
    host.send("Continue#$#%^%\r\n")
    host.pass(.second)
    host.forget()
    host.send("Stop#$#%^%\r\nModes#$#%^%\r\n")
    host.pass(.second)
    let isBroken = mode == 3 || mode == 4
    #expect(host.car.isStopped)
    #expect(host.motors == (isBroken ? "50.96 50.96" : "0.00 0.00"))
    #expect(host.sent.isEmpty == isBroken)
    #expect(host.events.first == (isBroken ? "exception AttributeError in Stop, 13 bytes lost" : "frame Stop"))
    host.send("ChosenMode#$#0%^%\r\n")
    host.pass(.second)
    host.send("Stop#$#%^%\r\n")
    #expect(host.motors == "0.00 0.00", "this fixes it in any mode")
  }

  @Test func `it follows a line by itself, and an abandoned thread continues to drive`() throws {
    var host = try AutoTTCarHost.ready(mode: 5)
    host.send("Continue#$#%^%\r\nModes#$#%^%\r\n")
    host.pass(.second)
    #expect(host.motors == "17.00 17.00" && host.sent.isEmpty && host.events.contains("motors 17.00 17.00"))
    host.send(AutoTTCarHost.ahead)
    #expect(host.motors == "17.00 17.00")
    host.send("ChosenMode#$#0%^%\r\n")
    host.pass(.second)
    #expect(host.motors == "0.00 0.00" && host.car.mode == 0)
    host = try AutoTTCarHost.ready(mode: 10)
    host.send("SpeechRecognition#$#DRIVE%^%\r\n")
    #expect(host.motors == "17.00 17.00" && host.car.lights == "low")
    host.send("ChosenMode#$#0%^%\r\nStop#$#%^%\r\n")
    #expect(host.motors == "0.00 0.00")
    host.pass(20 * .millisecond)
    #expect(host.motors == "17.00 17.00", "the thread was not stopped")
    host.send("Disconnect#$#%^%\r\n")
    host.pass(.second)
    #expect(host.motors == "0.00 0.00")
  }

  @Test func `buttons control the lights in the modes that use them`() throws {
    var host = try AutoTTCarHost.ready(mode: 1)
    #expect(host.car.lights == "low")
    host.send("LeftButtonTouchDown#$#%^%\r\n")
    #expect(host.car.lights == "low left")
    host.send("RightButtonTouchDown#$#%^%\r\n")
    #expect(host.car.lights == "high")
    host.send("RightButtonTouchUp#$#%^%\r\nLeftButtonTouchUp#$#%^%\r\nRightButtonTouchDown#$#%^%\r\n")
    #expect(host.car.lights == "high right")
    host.send("RightButtonTouchUp#$#%^%\r\nChosenMode#$#0%^%\r\nRightButtonTouchDown#$#%^%\r\n")
    #expect(host.car.lights == "off")
    #expect(host.events.filter { $0.hasPrefix("lights") } == ["lights low left", "lights high", "lights high right", "lights off"])
    #expect(host.events.last == "lights off" && host.events.contains("ignored RightButtonTouchDown"))
    host = try AutoTTCarHost.ready(mode: 3, driving: true)
    for side in ["Left", "Right"] {
      for move in ["Down", "Up"] { host.send("\(side)ButtonTouch\(move)#$#%^%\r\nModes#$#%^%\r\n") }
    }
    #expect(host.sent.isEmpty && host.motors == "0.00 0.00" && host.events.count == 4)
  }

  @Test func `a disconnect is not detected, and a Disconnect frame ends the program`() throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.give(.linkChanged(.main, .down("closed")))
    host.pass(3600 * .second)
    #expect(host.motors == "50.96 50.96" && !host.car.isWaiting && !host.car.hasEnded && host.resets.isEmpty)
    host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.send("ShutDown#$#%^%\r\n")
    #expect(host.motors == "50.96 50.96", "it waits for another frame")
    host.send("Disconnect#$#%^%\r\n" + AutoTTCarHost.ahead)
    #expect(host.events.contains("frame Disconnect") && host.motors == "50.96 50.96", "the rest of the read is still executed")
    host.pass(.second)
    #expect(host.motors == "0.00 0.00" && host.car.hasEnded && host.resets == [.main] && host.car.nextWake == nil)
    host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.send("Disconnect#$#%^%\r\n")
    #expect(host.motors == "0.00 0.00" && !host.car.hasEnded)
    host.send(AutoTTCarHost.ahead)
    #expect(host.motors == "0.00 0.00", "nothing more is read")
  }
}
