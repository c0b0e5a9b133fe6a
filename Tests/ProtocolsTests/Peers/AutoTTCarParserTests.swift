import Peers
import Protocols
import Testing

/// Which frames of which reads the car executes, as in the original; and its exceptions and bursts.
@Suite struct AutoTTCarParserTests {
  private static let gyro = "Gyro#$# 0.400000; 0.200000; 0.000000%^%\r\n"

  @Test(
    arguments: [
      ([gyro + gyro], ["Gyro", "Gyro"]),
      (["Gyro#$# 0.1; 0.", "2; 0.3%^%\r\nStop#$#%^%\r\n" + gyro], ["Gyro"]),
      (["Stop#$#%^%"], []),
      (["Stop#$#%^%", gyro], ["Gyro"]),
      (["Stop#$#%^%" + gyro], ["Stop"]),
      (["Message#%#hi%^%\r\nStop#$#%^%\r\n"], []),
      (["stop#$#%^%\r\n", " Stop#$#%^%\r\n", "Stop #$#%^%\r\n", "Stop#$#%^%\r", "\n"], []),
      (["\r\nStop#$#%^%\r\nStop#$#%^%\r\n"], ["Stop"]),
      (["Stop#$#%^%\n" + gyro], ["Stop"]),
      (["ConnectionTest#$#%^%\r\nMainView#$#Exited%^%\r\nStop#$#%^%\r\n"], ["Stop"]),
      (["\u{0}#$#%^%\r\n%^%\r\n#$#Stop#$#%^%\r\nStop#$#a#$#b%^%\r\n"], ["Stop"]),
      ([String(repeating: "x", count: 1020) + "Stop#$#%^%\r\n", "Stop#$#%^%\r\n"], ["Stop"]),
      ([""], []),
    ] as [([String], [String])]) func `the car executes exactly the frames of the table`(_ chunks: [String], _ acted: [String]) throws
  {
    var host = try AutoTTCarHost.ready(driving: true)
    for chunk in chunks { host.send(chunk) }
    let frames = host.events.filter { $0.hasPrefix("frame ") }.compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) }
    #expect(frames == acted)
    let body = host.events.contains("frame Stop %^%" + Self.gyro.dropLast("%^%\r\n".count))
    #expect(body == (chunks == ["Stop#$#%^%" + Self.gyro]), "a junk body")
  }

  @Test func `in some modes a tilt while stopped loses the rest of its read`() throws {
    for mode in [nil, 0, 2, 7] {
      var host = try AutoTTCarHost.ready(mode: mode)
      host.send(Self.gyro + "Continue#$#%^%\r\n")
      #expect(host.car.isStopped && host.events == ["exception AttributeError in Gyro, 16 bytes lost"])
      host.send("Continue#$#%^%\r\n" + Self.gyro)
      #expect(!host.car.isStopped && host.motors == "52.93 21.68")
    }
    for mode in [1, 6, 8, 9] {
      var host = try AutoTTCarHost.ready(mode: mode)
      host.send(Self.gyro + "Continue#$#%^%\r\n")
      #expect(!host.car.isStopped && host.motors == "0.00 0.00")
    }
  }

  @Test func `an invalid tilt raises an exception before the motors change`() throws {
    for body in [
      "", "0.4", "0.4; 0.2", "0,4; 0,2; 0,0", "0.4; 0.2; x", "0.4; 0.2; 0; 1", "0x1; 0; 0", "+-1; 0; 0", "1e; 0; 0", "4 0; 0; 0",
    ] {
      var host = try AutoTTCarHost.ready(driving: true)
      host.send("Gyro#$#\(body)%^%\r\nStop#$#%^%\r\n")
      #expect(host.events == ["exception ValueError in Gyro, 12 bytes lost"] && !host.car.isStopped, "\(body)")
    }
    for (body, motors) in [
      (" 0.4;0;0", "50.96 50.96"), ("\t.4 ; -0 ; 0\n", "50.96 50.96"), ("4e-1;0.;1E5", "50.96 50.96"), ("+0.4;0;nan", "50.96 50.96"),
      ("nan;0;0", "0.00 0.00"), ("inf;0;0", "100.00 100.00"), ("-Infinity;1;0", "-100.00 -100.00"),
    ] {
      var host = try AutoTTCarHost.ready(driving: true)
      host.send("Gyro#$#\(body)%^%\r\n")
      #expect(host.motors == motors && host.events.first?.hasPrefix("frame Gyro") == true, "\(body)")
    }
  }

  @Test func `bytes that arrive while it is busy are read in pieces of 1024 bytes`() throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send("Status#$#%^%\r\n" + Self.gyro)
    for _ in 0..<30 { host.send(Self.gyro) }
    host.send("Stop#$#%^%\r\n")
    host.pass(990 * .millisecond)
    #expect(host.motors == "0.00 0.00" && !host.car.isStopped && host.events == ["frame Status"])
    host.pass(20 * .millisecond)
    // 30 of 41 bytes are 1230: the 25th is cut, and the one after it is lost with its tail.
    let seen = host.events.filter { $0.hasPrefix("frame Gyro") }.count
    #expect(seen == 1 + 24 + 4 && host.events.contains { $0.hasPrefix("ignored ") })
    #expect(host.car.isStopped && host.motors == "0.00 0.00")
  }

  @Test func `the receive buffer of the kernel is limited`() throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send("Status#$#%^%\r\n")
    for _ in 0..<200 { host.send(String(repeating: "x", count: 1024)) }
    #expect(!host.car.hasRoom)
    host.pass(.second)
    host.send("Stop#$#%^%\r\n")
    #expect(host.car.hasRoom && host.car.isStopped)
  }

  @Test(arguments: [AutoTTCar.Dialect.asBuilt, .documented]) func `random frames do not stop the program`(_ dialect: AutoTTCar.Dialect)
    throws
  {
    let words = [
      "Gyro", "Stop", "Continue", "ChosenMode", "InfoModes", "Status", "VideoStream", "VideoQuality", "LeftButtonTouchDown", "Modes",
      "RightButtonTouchUpn", "SpeechRecognition", "#$#", "#$#", "#$#", "%^%", "%^%\r\n", "%^%\r\n", " 0.4; -0.2; 1", "3", "-11", "10", "On",
      "Off",
      "Low", "DRIVE", "nan;inf;-0", "99999999999999999999", ";;;", "\u{0}\u{1B}[2J", "\n",
    ]
    var state: UInt64 = 7
    func draw(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    var host = try AutoTTCarHost.ready(dialect)
    for _ in 0..<3000 {
      host.send((0..<draw(12)).map { _ in words[draw(words.count)] }.joined())
      host.pass(Nanoseconds(draw(400)) * .millisecond)
      let motors = host.car.motors
      #expect(abs(motors.left) <= 100 && abs(motors.right) <= 600 && host.car.nextWake ?? .max >= host.now)
      if host.events.count > 1000 { host.forget() }
      // A client fetches pictures, so that the camera does not block the program.
      host.give(.linkChanged("video", .up(maximumSend: nil)))
      host.send("GET /video_feed HTTP/1.0\r\n\r\n", over: "video")
    }
    let frame = "Modes#$#%^%\r\n"
    host.send(frame)
    host.pass(10 * .second)
    host.forget()
    host.send(frame)
    host.pass(.second)
    #expect(host.sentText.contains("Modes#$#"))
  }
}
