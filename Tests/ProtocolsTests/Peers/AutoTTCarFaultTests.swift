import Peers
import Protocols
import Testing

/// Faults that can be added to the simulated car, flaws that can be removed, and the documented dialect.
@Suite struct AutoTTCarFaultTests {
  @Test func `faults are parsed, or rejected with a message`() throws {
    for (syntax, _) in CarFault.table {
      let name = String(syntax.split(separator: "[")[0])
      #expect(try CarFault(name).kind.rawValue == name)
    }
    #expect(CarFlaw.table.map(\.syntax) == ["reassembly", "video-block", "restart", "one-client", "ignores-close"])
    #expect(try CarFault("lag:@5:2000") == CarFault(.lag, .after(5 * .second), duration: 2 * .second))
    #expect(try CarFault("lag") == CarFault(.lag, .every(100), duration: .second / 2))
    for wrong in ["", "x", "lag:0", "lag:@0", "lag:1:0", "lag:1:2:3", "lag:", "mute:1", "ignores-close"] {
      #expect(throws: ValueError.self, "\(wrong)") { _ = try CarFault(wrong) }
    }
  }

  @Test func `after a lag the queued frames are read in one burst`() throws {
    var host = try AutoTTCarHost.ready(.asBuilt, "lag:2:500", driving: true)
    host.send(AutoTTCarHost.ahead)
    for _ in 0..<5 { host.send(AutoTTCarHost.ahead) }
    host.send("Stop#$#%^%\r\n")
    host.pass(400 * .millisecond)
    #expect(!host.car.isStopped)
    host.pass(.second)
    #expect(host.car.isStopped)
    host = try AutoTTCarHost.ready(.asBuilt, "lag:@2:300", driving: true)
    host.pass(2 * .second)
    host.send("Stop#$#%^%\r\n")
    #expect(!host.car.isStopped)
    host.pass(300 * .millisecond)
    host.send("Continue#$#%^%\r\n")
    #expect(!host.car.isStopped && host.events.filter { $0.hasPrefix("frame") } == ["frame Stop", "frame Continue"])
  }

  @Test func `a held car sends nothing, and a mute one does not request tilt`() throws {
    var host = try AutoTTCarHost.ready(.asBuilt, "held")
    host.send("Modes#$#%^%\r\n")
    host.pass(60 * .second)
    #expect(host.sent.isEmpty && host.events.isEmpty && !host.car.isWaiting)
    host = try AutoTTCarHost(.asBuilt, "mute")
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.pass(2 * .second)
    #expect(host.sent.count == 2 && host.sent.allSatisfy { $0.text.hasPrefix("Modes#$#") })
  }

  private func greeting(_ faults: String...) throws -> AutoTTCarHost {
    var host = try AutoTTCarHost()
    host.car = AutoTTCar(faults: try faults.map { try CarFault($0) })
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.pass(2 * .second - 1)
    return host
  }

  @Test func `faults split, join, extend or change its messages`() throws {
    let whole = try greeting().sentText
    let split = try greeting("split")
    #expect(split.sentText == whole && split.sent.count > 3)
    let joined = try greeting("coalesce")
    #expect(joined.sent.count == 1 && whole.hasPrefix(joined.sentText))
    let endless = try greeting("endless").sentText
    #expect(endless.hasPrefix(whole + "Message#$#aaaa") && endless.utf8.count == whole.utf8.count + 10 + 1 << 20 && endless.hasSuffix("a"))
    let odd = try greeting("odd-gyro").sentText
    #expect(odd.hasPrefix("Gyro#$#nan%^%\r\nGyro#$#-1%^%\r\nGyro#$#0%^%\r\nGyro#$#1e9%^%\r\nGyro#$#0.0166666666667%^%\r\n"))
    let list = try greeting("long-modes").sent[1].text
    #expect(list.utf8.count > 2000 && list.hasPrefix("Modes#$#Tilt Steering;Tilt, Lights;"))
    let marks = try greeting("message-delimiters").sent.suffix(2).map(\.text)
    #expect(marks[0].contains(";") && marks[1].split(separator: "#$#").count == 3)
  }

  @Test func `faults change the form of the status`() throws {
    for (fault, piece) in [
      ("comma", "voltage: 7,41 V;"), ("ansi", "CPU usage: \u{1B}[m\u{1B}[1m"),
      ("odd-status", ";CPU usage: ;Ready to drive;: 7 V;;Wheel speed"),
    ] {
      var host = try AutoTTCarHost.ready(.asBuilt, fault)
      host.send("Status#$#%^%\r\n")
      host.pass(.second)
      #expect(host.sentText.contains(piece), "\(fault)")
    }
  }

  @Test func `warnings are sent once, and that of the temperature again after cooling down`() throws {
    var host = try AutoTTCarHost.ready(.asBuilt, "warn", "flat")
    // Also while its receiving thread is busy.
    host.send("VideoStream#$#On%^%\r\n")
    host.pass(30 * .second)
    let warnings = host.sentText.split(separator: "%^%\r\n").filter { $0.hasPrefix("Message") }
    #expect(
      warnings == [
        "Message#$#The CPU temperatur is over 80.000000 C.",
        "Message#$#The voltage on the battery driving the motors is under 6.00 V",
        "Message#$#The voltage on the battery driving the raspberry pi is under 4.90 V",
      ])
    #expect(host.sent.first { $0.text.hasPrefix("Message") }?.at == 2 * .second)
    host.forget()
    host.pass(30 * .second)
    #expect(host.sentText == "Message#$#The CPU temperatur is over 80.000000 C.%^%\r\n")
  }

  @Test func `flaws can be removed`() throws {
    var host = try AutoTTCarHost.ready(without: [.reassembly])
    for byte in (AutoTTCarHost.ahead + "Continue#$#%^%\r\n" + AutoTTCarHost.ahead).utf8 { host.give(.received(.main, [byte])) }
    #expect(host.motors == "50.96 50.96")
    host = try AutoTTCarHost.ready(without: [.videoBlock])
    host.send("VideoStream#$#On%^%\r\nContinue#$#%^%\r\n")
    #expect(!host.car.isStopped && host.car.isStreaming && !host.sentText.contains("Started"))
    host.give(.linkChanged("video", .up(maximumSend: nil)))
    host.send("GET /video_feed HTTP/1.1\r\n\r\n", over: "video")
    #expect(host.sentText.hasSuffix("VideoStreamStarted#$#%^%\r\n"))
    host = try AutoTTCarHost.ready(without: [.ignoresClose], driving: true)
    host.send(AutoTTCarHost.ahead)
    host.give(.linkChanged(.main, .down("closed")))
    #expect(host.motors == "0.00 0.00")
    host.pass(.second)
    #expect(host.car.hasEnded)
  }

  @Test func `it lets the next client in, where it is allowed to`() throws {
    for (without, goesOn) in [([.oneClient], true), ([.oneClient, .ignoresClose, .restart], false)] as [(Set<CarFlaw>, Bool)] {
      var host = try AutoTTCarHost.ready(without: without, driving: true)
      host.send(AutoTTCarHost.ahead)
      host.give(.linkChanged(.main, .down("closed")))
      #expect(host.car.isWaiting && host.resets == [.main] && (host.motors == "50.96 50.96") == goesOn)
      host.give(.linkChanged(.main, .up(maximumSend: nil)))
      host.pass(.second)
      #expect(host.sentText.hasPrefix("Gyro#$#") && host.car.isStopped != goesOn)
    }
    var host = try AutoTTCarHost.ready(without: [.restart], driving: true)
    host.send(AutoTTCarHost.ahead)
    host.send("Disconnect#$#%^%\r\n")
    #expect(host.motors == "0.00 0.00" && host.car.isWaiting && !host.car.hasEnded)
    host.pass(60 * .second)
    #expect(host.sent.isEmpty)
  }

  @Test func `the documented dialect behaves as described`() throws {
    var host = try AutoTTCarHost(.documented)
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.send("Modes#$#%^%InfoModes#$#%^%\r\nSta")
    host.send("tus#$#%^")
    host.send("%")
    let frames = host.sentText.split(separator: "%^%").map { $0.split(separator: "#$#").first ?? "" }
    #expect(
      frames == ["Gyro", "Modes", "InfoModes", "Status"] && !host.sentText.contains("\r") && host.sentText.hasPrefix("Gyro#$#0.05%^%"))
    #expect(host.sentText.split(separator: "%^%").dropFirst().prefix(2).allSatisfy { $0.split(separator: ";").count == 3 })
    host.send("Gyro#$#0.4;0;0%^%Continue#$#%^%Gyro#$#0.4;0;0%^%")
    #expect(host.motors == "50.96 50.96", "no exception is raised")
    host.send("ChosenMode#$# 1%^%LeftButtonTouchDown#$#%^%LeftButtonTouchDownn#$#%^%")
    #expect(host.motors == "0.00 0.00" && host.car.isStopped && host.car.lights == "low left" && host.sentText.hasSuffix("ButtonsOn#$#%^%"))
    host.send("VideoQuality#$#low%^%VideoStream#$#on%^%Continue#$#%^%\rGyro#$#1;0;0%^%\n")
    #expect(host.car.isStreaming && host.motors == "100.00 100.00")
    host.give(.linkChanged(.main, .down("closed")))
    #expect(host.car.isWaiting && host.motors == "100.00 100.00", "the description has no watchdog")
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.send("ShutDown#$#%^%")
    host.pass(.second)
    #expect(host.motors == "0.00 0.00" && host.car.isOff && host.car.hasEnded)
  }
}
