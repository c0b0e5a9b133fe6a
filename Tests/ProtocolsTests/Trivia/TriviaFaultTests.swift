import Testing

@testable import Peers
@testable import Protocols

/// Faults, idle clients and random bytes.
@Suite struct TriviaFaultTests {
  // MARK: Faults

  private func rig(_ faults: String...) throws -> TriviaRig {
    let rig = TriviaRig()
    try rig.register()
    _ = try rig.ask("GET", "/User/History/18/2")
    rig.faults = try faults.map { try TriviaFault($0) }
    return rig
  }

  @Test(arguments: [("error", 500), ("down", 503), ("html", 200), ("redirect", 302)])
  func `a fault that replaces the response changes no state`(_ fault: String, _ status: Int) throws {
    let rig = try self.rig(fault)
    let answer = try rig.ask("GET", "/Trivia/18")
    #expect(answer.status == status && rig.store.user(18)?.downloaded == 499)
    #expect((answer.fields["content-type"]?.hasPrefix("text/html") == true) == ["down", "html"].contains(fault))
    #expect(answer.fields["location"] == (fault == "redirect" ? "http://elsewhere.invalid/" : nil))
    rig.faults = []
    #expect(try rig.ask("GET", "/Trivia/18").status == 200)
  }

  @Test func `a fault that damages the response does not undo the request`() throws {
    for fault in ["lost", "slow:1:5000", "drip", "truncated", "huge"] {
      let rig = try self.rig(fault)
      let whole = try self.rig().ask("GET", "/Trivia/18").bytes
      let start = rig.now
      let (bytes, writes) = rig.exchange(Array("GET /Trivia/18 HTTP/1.1\r\n\r\n".utf8))
      #expect(rig.store.user(18)?.downloaded == 500)
      switch fault {
      case "lost": #expect(bytes.isEmpty)
      case "drip": #expect(bytes == whole && writes == whole.count && rig.now - start >= Int64(whole.count - 1) * 100 * .millisecond)
      case "truncated": #expect(whole.starts(with: bytes) && bytes.count < whole.count && bytes.count > whole.count / 2)
      case "huge": #expect(bytes.count > 10_000_000)
      default: #expect(bytes == whole && rig.now - start == 5 * .second)
      }
    }
    let garbage = try rig("garbage")
    #expect(!garbage.exchange(Array("GET /Trivia/18 HTTP/1.1\r\n\r\n".utf8)).bytes.starts(with: Array("HTTP".utf8)))
  }

  @Test func `some faults change the JSON of responses`() throws {
    let rig = try self.rig("strings", "null", "duplicate")
    let row = #"{"trivia":{"id":"1","text":null,"upvotes":0,"downvotes":0},"userVote":0}"#
    #expect(try rig.history().hasPrefix(#"{"triviaHistory":[\#(row),\#(row),{"trivia":{"id":"2","#))
    #expect(try rig.register("bob@example.org").body.hasPrefix(#"{"id":"19","#))
    #expect(try rig.ask("GET", "/Trivia/18").body == "null")
  }

  @Test func `faults act on each Nth client, or from a given time on`() throws {
    let rig = TriviaRig(firstUser: 2)
    rig.faults = [try TriviaFault("error:3"), try TriviaFault("down:@60")]
    #expect(try (0..<6).map { _ in try rig.ask("GET", "/User").status } == [404, 404, 500, 404, 404, 500])
    rig.now = 60 * .second
    #expect(try rig.ask("GET", "/User").status == 503)
    #expect(throws: ValueError.self) { try TriviaFault("nonsense") }
  }

  // MARK: Clients

  @Test func `clients that send no request or do not read are disconnected`() throws {
    var server = TriviaServer(TriviaRig().service)
    var effects = Effects()
    func isReset() -> Bool { effects.list.contains { if case .resetLink = $0 { true } else { false } } }
    #expect(server.nextWake == nil)
    server.handle(.linkChanged(.main, .up(maximumSend: nil)), at: .second, &effects)
    #expect(server.nextWake == 31 * .second)
    server.handle(.received(.main, Array("GET /Tr".utf8)), at: 30 * .second, &effects)
    #expect(effects.isEmpty && server.nextWake == 31 * .second)
    server.handle(.wake, at: 31 * .second, &effects)
    #expect(isReset() && server.nextWake == nil)
    effects.removeAll()
    server.handle(.linkChanged(.main, .up(maximumSend: nil)), at: 40 * .second, &effects)
    server.handle(.received(.main, Array("GET / HTTP/1.1\r\n\r\n".utf8)), at: 40 * .second, &effects)
    #expect(!isReset() && server.nextWake == 340 * .second)
    server.handle(.wake, at: 340 * .second, &effects)
    #expect(isReset() && server.nextWake == nil)
  }

  @Test func `a failing store is a server error, and the output has the reason`() throws {
    let rig = TriviaRig(facts: [])
    try rig.register()
    rig.store.load([TriviaFact(500, stored: "a \"b\"")], replacing: true)
    let answer = try rig.ask("GET", "/Trivia/18")
    #expect(answer.status == 500 && answer.body == #"{"message":"An error has occurred."}"# && rig.output.contains("--facts"))
  }

  @Test func `a body that is too long or has no length is rejected`() throws {
    let rig = TriviaRig()
    #expect(try rig.ask("POST", "/User/Login", String(repeating: " ", count: 65_537)).status == 413)
    #expect(try rig.ask("POST", "/User/Login", String(repeating: " ", count: 65_535) + "{}").status == 413)
    #expect(try rig.ask("POST", "/User/Login", String(repeating: " ", count: 65_534) + "{}").status == 404)
    let chunked = try rig.answer(Array("POST /User/Login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".utf8))
    #expect(chunked.status == 411 && chunked.body.contains("message"))
  }

  @Test(arguments: 0..<6) func `random bytes do not crash the server`(_ seed: Int) throws {
    var random = SeededRandom(seed: UInt64(seed))
    let rig = TriviaRig()
    try rig.register()
    let body = #"{"name":"A","email":"a@example.org","password":"p","userVote":1,"userId":18,"triviaId":1}"#
    let seeds = [
      "GET /Trivia/18  HTTP/1.1\r\nHost: h\r\n\r\n", "GET /User/History/18/3 HTTP/1.1\r\n\r\n", "GET /User/History/18 HTTP/1.1\r\n\r\n",
      "PUT /Trivia/Vote/1 HTTP/1.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
      "POST /User/Register HTTP/1.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
    ].map { Array($0.utf8) }
    var statuses: Set<Int> = []
    for round in 0..<1500 {
      var bytes = seeds[Int(random.next() % UInt64(seeds.count))]
      if round % 5 == 0 { bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
      for _ in 0..<Int(random.next() % 4) where !bytes.isEmpty {
        let place = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 4 {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: place)
        case 2: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
        default: bytes = Array(bytes[..<place])
        }
      }
      let (answer, writes) = rig.exchange(bytes, split: Int(random.next() % UInt64(bytes.count + 1)))
      #expect(writes <= 1)
      guard writes == 1 else { continue }
      let words = String(decoding: answer, as: UTF8.self).split(separator: " ")
      #expect(words[0] == "HTTP/1.1")
      if let status = Int(words[1]) { statuses.insert(status) }
    }
    #expect(statuses.isSuperset(of: [200, 400, 404]))
    let user = try #require(rig.store.user(18))
    #expect(user.heard <= user.downloaded)
  }
}
