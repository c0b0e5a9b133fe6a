import Peers
import Protocols
import Testing

/// A phone in virtual time for the simulated car: sends text as one read of the car, lets time pass, and keeps what the car
/// says, does and tells its motors.
struct AutoTTCarHost {
  var car: AutoTTCar
  var now: Instant = 0
  private(set) var heard: [(at: Instant, text: String)] = []
  private(set) var events: [String] = []
  private(set) var resets: [LinkName] = []
  private(set) var video: [LinkName: [UInt8]] = [:]
  /// A link whose bytes nobody takes.
  var stuck: LinkName?

  init(_ dialect: AutoTTCar.Dialect = .asBuilt, _ faults: String..., without: Set<CarFlaw> = []) throws {
    car = AutoTTCar(dialect, without: without, faults: try faults.map { try CarFault($0) })
    give(.started(restored: [:], wall: WallTime(microseconds: 0)))
  }

  /// A car that has greeted, and drives after Continue if it is told to.
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

  mutating func forget() { (heard, events) = ([], []) }

  /// What it said, as one text.
  var said: String { heard.map(\.text).joined() }
  /// What it told its motors last, in its own words.
  var motors: String { car.motors.text }

  mutating func send(_ text: String, over link: LinkName = .main) { give(.received(link, Array(text.utf8))) }

  mutating func pass(_ time: Nanoseconds) {
    let end = now + time
    while let wake = car.nextWake, wake <= end {
      #expect(wake >= now, "a moment in the past is never asked for again")
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
          if link == .main { heard.append((now, String(decoding: bytes, as: UTF8.self))) } else { video[link, default: []] += bytes }
          if link != stuck { inputs.append(.sent(id, failure: nil)) }
        case .event(_, let text): events.append(text)
        case .resetLink(let link, _): resets.append(link)
        default: Issue.record("a car does nothing but say, do and end: \(effect)")
        }
      }
    }
  }
}

/// The simulated car is as the original: in its sessions, its modes, and in what it does not notice.
@Suite struct AutoTTCarTests {
  private let modes =
    "Modes#$#Tilt Steering;Tilt, Lights;Tilt with AOA;Button Steering;Button with AOA;Follow line;Stop sign;Traffic light;Speed limit;Tilt, Traffic rules, Light;Self steering%^%\r\n"

  @Test func `it greets half a second after its client, and drops what came before`() throws {
    var host = try AutoTTCarHost()
    #expect(host.car.isWaiting)
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.send("Modes#$#%^%\r\n")
    host.send("MainView#$#Entered%^%\r\n")
    host.pass(.second)
    #expect(!host.car.isWaiting && host.events.isEmpty)
    #expect(host.heard.map { $0.at / .millisecond } == [550, 560, 760])
    #expect(host.heard.map(\.text) == ["Gyro#$#0.0166666666667%^%\r\n", modes, modes])
    #expect(modes.utf8.count == 174)
    host.send("Modes#$#%^%\r\n")
    #expect(host.heard.last?.text == modes)
  }

  @Test func `answers have the original's form`() throws {
    var host = try AutoTTCarHost.ready()
    host.send("InfoModes#$#10%^%\r\n")
    host.send("InfoModes#$#-11%^%\r\n")
    #expect(host.heard.count == 2 && host.heard.allSatisfy { $0.text.hasPrefix("InfoModes#$#") && $0.text.hasSuffix(".%^%\r\n") })
    host.forget()
    host.send("InfoModes#$#11%^%\r\nModes#$#%^%\r\n")
    host.send("InfoModes#$#-12%^%\r\n")
    host.send("InfoModes#$#one%^%\r\n")
    #expect(host.heard.isEmpty)
    #expect(host.events.map { $0.prefix(22) } == ["exception IndexError i", "exception IndexError i", "exception ValueError i"])
    host.send("Status#$#%^%\r\n")
    #expect(host.heard.isEmpty, "top, df and free take their time")
    host.pass(.second)
    let items = host.said.dropFirst("Status#$#".count).dropLast("%^%\r\n".count).split(separator: ";")
    #expect(items.count == 8 && host.said.hasPrefix("Status#$#Motor battery voltage: 7.41 V;Raspberry Pi's battery voltage: 5.02 V;"))
    #expect(items.map { $0.split(separator: " ").last } == ["V", "V", "C", "%", "MB", "MB", "GB", "GB"])
  }

  @Test func `choosing a mode says what follows, and stops nothing`() throws {
    for (index, chosen) in [
      ("Off", "Off"), ("On", "Off"), ("Off", "Off"), ("On", "Off"), ("On", "Off"), ("Off", "On"), ("On", "Off"), ("Off", "Off"),
      ("On", "Off"),
      ("On", "Off"), ("Off", "On"),
    ].enumerated() {
      var host = try AutoTTCarHost.ready(driving: true)
      host.send(AutoTTCarHost.ahead)
      host.send("ChosenMode#$#\(index)%^%\r\n")
      #expect(host.said == "Buttons\(chosen.0)#$#%^%\r\nSpeechRecognition\(chosen.1)#$#%^%\r\n" && host.heard.count == 1)
      #expect(host.car.mode == index && host.car.isStopped && host.motors == "50.96 50.96")
    }
    var host = try AutoTTCarHost.ready()
    for body in [" 1", "01", "11", "", "one"] { host.send("ChosenMode#$#\(body)%^%\r\n") }
    #expect(host.car.mode == 0 && host.heard.isEmpty)
  }

  /// What Stop does to a car that is moving when the mode is chosen, and what it says.
  @Test(arguments: 0...10) func `stop in each mode`(_ mode: Int) throws {
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
    #expect(host.heard.isEmpty == isBroken)
    #expect(host.events.first == (isBroken ? "exception AttributeError in Stop, 13 bytes lost" : "frame Stop"))
    host.send("ChosenMode#$#0%^%\r\n")
    host.pass(.second)
    host.send("Stop#$#%^%\r\n")
    #expect(host.motors == "0.00 0.00", "this mends it in any mode")
  }

  @Test func `it follows a line by itself, and a thread that is forgotten goes on`() throws {
    var host = try AutoTTCarHost.ready(mode: 5)
    host.send("Continue#$#%^%\r\nModes#$#%^%\r\n")
    host.pass(.second)
    #expect(host.motors == "17.00 17.00" && host.heard.isEmpty && host.events.contains("motors 17.00 17.00"))
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
    #expect(host.motors == "17.00 17.00", "nobody told the thread to end")
    host.send("Disconnect#$#%^%\r\n")
    host.pass(.second)
    #expect(host.motors == "0.00 0.00")
  }

  @Test func `buttons are lights, where they are anything`() throws {
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
    #expect(host.heard.isEmpty && host.motors == "0.00 0.00" && host.events.count == 4)
  }

  @Test func `an end of file is not noticed, and Disconnect ends the program`() throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.give(.linkChanged(.main, .down("closed")))
    host.pass(3600 * .second)
    #expect(host.motors == "50.96 50.96" && !host.car.isWaiting && !host.car.hasEnded && host.resets.isEmpty)
    host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.send("ShutDown#$#%^%\r\n")
    #expect(host.motors == "50.96 50.96", "it waits for another word")
    host.send("Disconnect#$#%^%\r\n" + AutoTTCarHost.ahead)
    #expect(host.events.contains("frame Disconnect") && host.motors == "50.96 50.96", "the rest of the read is still obeyed")
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
