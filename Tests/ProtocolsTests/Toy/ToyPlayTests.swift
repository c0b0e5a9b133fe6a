import Peers
import Protocols
import Testing

/// Throws of the simulated toy, and its requests as sent by the firmware.
@Suite struct ToyPlayTests {
  private static let fetch = "GET /Trivia/18  HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"
  private static let report = "GET /User/History/18/1 HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"

  @Test func `on a throw one fact is spoken, one fetched and one play reported`() throws {
    var host = try ToyHost.online()
    #expect(host.led == .green)
    host.run(for: 20 * .second)
    #expect(host.requestTexts == [Self.fetch, Self.report])
    #expect(host.requests.map(\.bytes.count) == [87, 94])
    #expect(host.closings.map(\.link) == [ToyHost.server, ToyHost.server], "one connection per request")
    #expect(host.logged("thrown: speaks fact 0: A day on Venus") && host.logged("stored fact 0: Honey never spoils."))
    #expect(host.file("0.txt") == "Honey never spoils." && host.file("p.txt") == "1" && host.file("w.txt") == "1")
    #expect(host.file("s.txt") == nil && host.file("d.txt") == nil && host.led == .green)
    host.run(for: 20 * .second)
    #expect(host.requests.count == 4 && host.logged("thrown: speaks fact 1"))
  }

  @Test func `facts are stored in a ring of 500`() throws {
    var card = ["p.txt": Array("499\r\n".utf8), "w.txt": Array("499".utf8), "u.txt": Array("18".utf8), "499.txt": Array("Old.".utf8)]
    card["s.txt"] = Array("many".utf8)
    card["d.txt"] = Array("501".utf8)
    var host = try ToyHost(card: card) {
      $0.isJoined = true
      $0.presses = []
      $0.throwEvery = 20 * .second
    }
    host.run(for: 22 * .second)
    #expect(host.logged("thrown: speaks fact 499: Old.") && host.file("499.txt") == "Honey never spoils.")
    #expect(host.file("p.txt") == "0" && host.file("w.txt") == "0" && host.requests.count == 2, "invalid counters are ignored")
  }

  @Test func `without a user no request is made`() throws {
    var host = try ToyHost.online(user: "")
    host.run(for: 60 * .second)
    #expect(host.requests.isEmpty && host.logged("please set up the Internet") && host.file("p.txt") == "3")
  }

  @Test func `failed requests are repeated later, first reports and then fetches`() throws {
    var host = try ToyHost.online(throwEvery: 4 * .second)
    host.answer = { _ in "HTTP/1.1 500 Internal Server Error\r\n\r\n" }
    host.run(for: 4 * .second)
    #expect(host.requestTexts == [Self.fetch], "no report without a fact")
    #expect(host.file("s.txt") == "1" && host.file("d.txt") == "1")
    host.run(for: 500 * .millisecond)
    #expect(host.requestTexts.count == 2 && host.requestTexts.last?.hasPrefix(Self.report) == true)
    let extra = try #require(host.requests.last).bytes.count - 94
    #expect((1...12).contains(extra))
    host.serverIsThere = false
    host.run(for: 8 * .second)
    #expect(host.file("s.txt") == "3" && host.file("d.txt") == "3")
    let before = host.requestTexts.count
    host.serverIsThere = true
    host.answer = { _ in "HTTP/1.1 200 OK\r\n\r\n\"Yes.\"" }
    host.run(for: 3 * .second)
    let made = Array(host.requestTexts.dropFirst(before))
    #expect(made.first?.hasPrefix("GET /User/History/18/3 HTTP/1.1\r\n") == true && made.dropFirst().first == Self.fetch)
    #expect(host.file("s.txt") == "0" && host.file("d.txt") == "0" && made.count >= 4)
  }

  @Test func `a report that fails after its fetch is repeated later`() throws {
    var host = try ToyHost.online()
    host.answer = { $0.contains("Trivia/") ? "HTTP/1.1 200 OK\r\n\r\n\"A fact.\"" : "HTTP/1.1 404 Not Found\r\n\r\n" }
    host.run(for: 20 * .second)
    #expect(host.file("0.txt") == "A fact." && host.file("s.txt") == "1" && host.file("d.txt") == "1")
  }

  @Test func `the counters of failed requests end at 500`() throws {
    let card = ["s.txt": Array("499".utf8), "d.txt": Array("500".utf8), "u.txt": Array("18".utf8)]
    var host = try ToyHost(card: card) {
      $0.presses = []
      $0.throwEvery = 20 * .second
    }
    host.run(for: 62 * .second)
    #expect(host.requests.isEmpty && host.file("s.txt") == "500" && host.file("d.txt") == "500")
  }

  @Test func `the toy waits ten seconds for a response, even after the server has closed`() throws {
    var host = try ToyHost.online()
    host.answer = { _ in nil }
    host.run(for: 20 * .second)
    #expect(host.led == .blue && host.isUp == [ToyHost.server])
    host.give(.linkChanged(ToyHost.server, .down("closed")))
    host.run(for: 9999 * .millisecond)
    #expect(host.led == .blue && host.file("s.txt") == nil)
    host.run(for: .millisecond)
    #expect(host.led == .green && host.file("s.txt") == "1" && host.logged("does not answer"))
  }

  @Test func `a throw during a request is ignored`() throws {
    var host = try ToyHost.online(throwEvery: 6 * .second)
    host.answer = { _ in nil }
    host.run(for: 16 * .second)
    #expect(host.file("p.txt") == "1" && host.logged("does not answer"))
    host.answer = { _ in "HTTP/1.1 200 OK\r\n\r\n\"Yes.\"" }
    host.run(for: 2 * .second)
    #expect(host.file("p.txt") == "2" && host.logged("reported 1 earlier plays") && host.logged("reported one play"))
  }

  @Test(arguments: [
    ("HTTP/1.1 200 OK\r\nETag: \"abc\"\r\n\r\n\"Honey.\"", "abcHoney."), ("HTTP/1.1 200 OK\r\n\r\n\"Say \\\"ah\\\".\"", "Say \\."),
    ("HTTP/1.1 200 OKAY\r\n\r\n\"Honey.\"", "Honey."), ("HTTP/1.1 200 OK\r\n\r\n\"Never closed", "Never closed"),
  ]) func `the fact is the text between quotes anywhere in the response`(_ answer: String, _ fact: String) throws {
    var host = try ToyHost.online()
    host.answer = { _ in answer }
    host.run(for: 20 * .second)
    #expect(host.file("0.txt") == fact)
  }

  @Test(arguments: [
    "HTTP/1.0 200 OK\r\n\r\n\"A\"", "HTTP/1.1 204 No Content\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n\"A\"", "HTTP/1.1 200 O", "<html>",
  ])
  func `an invalid response is a failed request`(_ answer: String) throws {
    var host = try ToyHost.online()
    host.answer = { _ in answer }
    host.run(for: 20 * .second)
    #expect(host.file("0.txt") == nil && host.file("s.txt") == "1" && host.logged("does not begin with"))
  }

  @Test func `a response is limited to 1024 bytes in one packet`() throws {
    let head = "HTTP/1.1 200 OK\r\n\r\n\""
    for (length, kept) in [(1024, 1024), (1025, 1024)] {
      var host = try ToyHost.online()
      let fact = String(repeating: "x", count: length - head.utf8.count - 1)
      host.answer = { _ in head + fact + "\"" }
      host.run(for: 20 * .second)
      #expect(host.file("0.txt")?.utf8.count == kept - head.utf8.count - (length == 1024 ? 1 : 0))
      #expect(host.logged("last 1 bytes of the reply are lost") == (length == 1025))
    }
    var parts = try ToyHost.online()
    parts.answer = { _ in "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" }
    parts.run(for: 20 * .second)
    #expect(parts.logged("stored fact 0: nothing") && parts.file("0.txt") == nil && parts.file("w.txt") == "1")
  }

  @Test func `a long user number overflows the buffer`() throws {
    var host = try ToyHost.online(user: "123456789")
    host.serverIsThere = false
    host.run(for: 20 * .second)
    host.serverIsThere = true
    host.run(for: 2 * .second)
    #expect(
      host.requestTexts.contains { $0.hasPrefix("GET /User/History/123456789/1 HTTP/1.1\r\n") }
        && host.logged("overflows a buffer by 1 bytes"))
  }

  @Test func `a low battery turns the green LED red`() throws {
    for (percent, led) in [(15, ToyLED.red), (16, .green)] {
      var host = try ToyHost {
        $0.isJoined = true
        $0.presses = []
        $0.battery = percent
      }
      host.run(for: 2 * .second)
      #expect(host.led == led)
    }
  }
}
