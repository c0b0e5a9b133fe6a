import Peers
import Protocols
import Testing

/// The simulated board does what the sketch does, its traps included.
@Suite struct ArduinoBoardTests {
  struct Host {
    var board: ArduinoBoard
    var now: Instant = 0
    var heard: [(at: Instant, text: String)] = []

    init(_ dialect: ArduinoBoard.Dialect = .asBuilt, _ faults: String...) throws {
      board = ArduinoBoard(dialect, faults: try faults.map { try BoardFault($0) })
      give(.linkChanged(.main, .up(maximumSend: nil)))
    }

    mutating func give(_ input: Input) {
      var inputs = [input]
      while !inputs.isEmpty {
        var effects = Effects()
        board.handle(inputs.removeFirst(), at: now, &effects)
        for case .send(_, let bytes, let id?, _) in effects.list {
          heard.append((now, String(decoding: bytes, as: UTF8.self)))
          inputs.append(.sent(id, failure: nil))
        }
      }
    }

    mutating func send(_ text: String) { give(.received(.main, Array(text.utf8))) }

    mutating func pass(_ time: Nanoseconds) {
      let end = now + time
      while let wake = board.nextWake, wake <= end {
        #expect(wake >= now)
        now = max(now, wake)
        give(.wake)
      }
      now = end
    }
  }

  @Test func `it never speaks unasked, and answers each byte in a pass of its own`() throws {
    var host = try Host()
    host.pass(10 * .second)
    #expect(host.heard.isEmpty)
    host.send("BBB")
    host.pass(.second)
    // The loop runs all the time: a byte waits for its next look, and each byte takes a pass.
    #expect(host.heard.map { ($0.at - 10 * .second) / .millisecond } == [45, 140, 235])
    var slow = try Host(.asBuilt, "no-vesc")
    slow.send("B")
    slow.pass(.second)
    #expect(slow.heard.map(\.at) == [135 * .millisecond] && slow.heard[0].text.hasPrefix("255$255$0$0.0"))
  }

  @Test func `the buzzer is latched by raw bytes, not by digits`() throws {
    var host = try Host()
    host.send("55")
    host.pass(.second)
    #expect(!host.board.isSounding)
    host.send("7B")
    host.pass(.second)
    #expect(host.board.isSounding)
    host.give(.linkChanged(.main, .down("gone")))
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    #expect(host.board.isSounding)
    host.send("-")
    host.pass(.second)
    #expect(!host.board.isSounding)
    // A module that announces itself with its address into the board's serial port.
    host.send("OK+CONN:00170B")
    host.pass(5 * .second)
    #expect(host.board.isSounding && host.heard.count == 5 + 14)
  }

  @Test func `the loop goes on while nobody is connected, and what it prints then is lost`() throws {
    var host = try Host()
    host.send("BBBB7")
    host.pass(200 * .millisecond)
    host.give(.linkChanged(.main, .down("gone")))
    host.pass(130 * .millisecond)
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.pass(.second)
    #expect(host.heard.count == 3 && host.board.isSounding)
  }

  @Test func `it is deaf while it prints`() throws {
    var host = try Host()
    host.send("B")
    host.pass(35 * .millisecond)
    host.send("7")
    host.pass(10 * .millisecond)
    host.send("B")
    host.pass(.second)
    #expect(host.heard.count == 2 && !host.board.isBuzzerLatched)
  }

  @Test func `bytes pile up to 63`() throws {
    var host = try Host()
    host.send(String(repeating: "B", count: 200))
    host.pass(20 * .second)
    #expect(host.heard.count == 63)
  }

  @Test func `as documented it begins, and sends again on an answer or after a while`() throws {
    var host = try Host(.documented)
    host.pass(100 * .millisecond)
    #expect(host.heard.count == 1)
    host.send("1")
    host.pass(100 * .millisecond)
    #expect(host.heard.count == 2 && host.board.isSounding)
    host.pass(2_900 * .millisecond)
    #expect(host.heard.count == 6)
    host.send("0")
    host.pass(100 * .millisecond)
    #expect(!host.board.isSounding)
  }

  @Test func `the ride goes on, and back, and the board counts it in hundredths`() throws {
    var host = try Host()
    var speeds: [Int] = []
    var distances: [String] = []
    for _ in 0..<60 {
      host.send("B")
      host.pass(.second)
      let fields = host.heard.last?.text.split(separator: "$").map(String.init) ?? []
      #expect(fields.count == 4 && fields[2] == "1")
      speeds.append(fields.first.flatMap { Int($0) } ?? 0)
      distances.append(fields.last ?? "")
    }
    #expect(speeds.max() == 17 && speeds.min() == -2)
    #expect(distances.allSatisfy { $0.split(separator: ".").last?.count == 2 } && Set(distances).count > 15)
  }

  @Test func `faults are read, or refused with words`() throws {
    for (form, _) in BoardFault.table {
      let name = form.split(separator: "[")[0]
      #expect(try BoardFault(String(name)).kind.rawValue == String(name))
    }
    #expect(try BoardFault("silence:@5:900") == BoardFault(.silence, .after(5 * .second), time: 900 * .millisecond))
    for wrong in ["", "x", "cut:0", "cut:@0", "cut:1:2", "split:1", "silence:1:0", "silence:1:2:3", "no-vesc:"] {
      #expect(throws: ValueError.self, "\(wrong)") { _ = try BoardFault(wrong) }
    }
  }
}
