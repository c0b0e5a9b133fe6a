import Peers
import Protocols
import Testing

/// The simulated board behaves like the sketch, including its flaws.
@Suite struct ArduinoBoardTests {
  struct Host {
    var board: ArduinoBoard
    var now: Instant = 0
    var sent: [(at: Instant, text: String)] = []

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
          sent.append((now, String(decoding: bytes, as: UTF8.self)))
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

  @Test func `it sends nothing unsolicited, and answers each byte in its own loop pass`() throws {
    var host = try Host()
    host.pass(10 * .second)
    #expect(host.sent.isEmpty)
    host.send("BBB")
    host.pass(.second)
    // The loop runs all the time: a byte waits for the next pass, and each byte takes one pass.
    #expect(host.sent.map { ($0.at - 10 * .second) / .millisecond } == [45, 140, 235])
    var slow = try Host(.asBuilt, "no-vesc")
    slow.send("B")
    slow.pass(.second)
    #expect(slow.sent.map(\.at) == [135 * .millisecond] && slow.sent[0].text.hasPrefix("255$255$0$0.0"))
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
    // A module that sends its address to the board's serial port when it connects.
    host.send("OK+CONN:00170B")
    host.pass(5 * .second)
    #expect(host.board.isSounding && host.sent.count == 5 + 14)
  }

  @Test func `the loop continues without a client, and its output is lost`() throws {
    var host = try Host()
    host.send("BBBB7")
    host.pass(200 * .millisecond)
    host.give(.linkChanged(.main, .down("gone")))
    host.pass(130 * .millisecond)
    host.give(.linkChanged(.main, .up(maximumSend: nil)))
    host.pass(.second)
    #expect(host.sent.count == 3 && host.board.isSounding)
  }

  @Test func `bytes that arrive while it prints are lost`() throws {
    var host = try Host()
    host.send("B")
    host.pass(35 * .millisecond)
    host.send("7")
    host.pass(10 * .millisecond)
    host.send("B")
    host.pass(.second)
    #expect(host.sent.count == 2 && !host.board.isBuzzerLatched)
  }

  @Test func `the receive buffer holds 63 bytes`() throws {
    var host = try Host()
    host.send(String(repeating: "B", count: 200))
    host.pass(20 * .second)
    #expect(host.sent.count == 63)
  }

  @Test func `in the documented dialect it sends first, and again after a reply or a timeout`() throws {
    var host = try Host(.documented)
    host.pass(100 * .millisecond)
    #expect(host.sent.count == 1)
    host.send("1")
    host.pass(100 * .millisecond)
    #expect(host.sent.count == 2 && host.board.isSounding)
    host.pass(2_900 * .millisecond)
    #expect(host.sent.count == 6)
    host.send("0")
    host.pass(100 * .millisecond)
    #expect(!host.board.isSounding)
  }

  @Test func `the ride goes forwards and backwards, and distances have two decimals`() throws {
    var host = try Host()
    var speeds: [Int] = []
    var distances: [String] = []
    for _ in 0..<60 {
      host.send("B")
      host.pass(.second)
      let fields = host.sent.last?.text.split(separator: "$").map(String.init) ?? []
      #expect(fields.count == 4 && fields[2] == "1")
      speeds.append(fields.first.flatMap { Int($0) } ?? 0)
      distances.append(fields.last ?? "")
    }
    #expect(speeds.max() == 17 && speeds.min() == -2)
    #expect(distances.allSatisfy { $0.split(separator: ".").last?.count == 2 } && Set(distances).count > 15)
  }

  @Test func `faults are parsed, or rejected with a message`() throws {
    for (form, _) in BoardFault.table {
      let name = form.split(separator: "[")[0]
      #expect(try BoardFault(String(name)).kind.rawValue == String(name))
    }
    #expect(try BoardFault("silence:@5:900") == BoardFault(.silence, .after(5 * .second), duration: 900 * .millisecond))
    for wrong in ["", "x", "cut:0", "cut:@0", "cut:1:2", "split:1", "silence:1:0", "silence:1:2:3", "no-vesc:"] {
      #expect(throws: ValueError.self, "\(wrong)") { _ = try BoardFault(wrong) }
    }
  }
}
