import Testing

@testable import Peers
@testable import Protocols

/// Requests of the toy, byte by byte, and responses that it understands.
@Suite struct TriviaToyTests {
  private static let host = "Host: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"
  /// With two spaces, as sent by the firmware.
  private static let fetch = Array("GET /Trivia/18  HTTP/1.1\r\n\(host)".utf8)
  private static let report = Array("GET /User/History/18/3 HTTP/1.1\r\n\(host)".utf8)

  /// The fact as the toy reads it: every byte between double quotes, anywhere in the response.
  private func spoken(_ bytes: [UInt8]) -> String {
    var (isInside, text): (Bool, [UInt8]) = (false, [])
    for byte in bytes {
      if byte == UInt8(ascii: "\"") { isInside.toggle() } else if isInside { text.append(byte) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private func rig(facts: [TriviaFact] = TriviaFact.builtIn) throws -> TriviaRig {
    let rig = TriviaRig(facts: facts)
    try rig.register()
    return rig
  }

  @Test func `the requests have the lengths of the firmware's`() {
    #expect(Self.fetch.count == 87 && Self.report.count == 94)
  }

  @Test func `a fetch is answered in one packet that the toy understands`() throws {
    let rig = try rig()
    let answer = try rig.answer(Self.fetch)
    #expect(answer.writes == 1 && answer.bytes.count <= 1024 && answer.bytes.starts(with: Array("HTTP/1.1 200 OK".utf8)))
    #expect(answer.bytes.allSatisfy { $0 < 0x80 } && answer.bytes.count { $0 == UInt8(ascii: "\"") } == 2)
    #expect(spoken(answer.bytes) == "Some turtles breathe through their rear ends while they winter under ice.")
    #expect(!answer.body.contains("\n") && rig.store.user(18)?.downloaded == 500)
  }

  @Test func `both requests are understood wherever they are split`() throws {
    for request in [Self.fetch, Self.report] {
      let whole = try rig().answer(request)
      for split in 1..<request.count {
        let rig = try rig()
        #expect(try rig.answer(request, split: split) == whole, "split at \(split)")
        #expect(rig.store.user(18)?.heard == (request == Self.report ? 3 : 0))
      }
    }
  }

  @Test func `bytes after the first request are ignored`() throws {
    for rest in [[0, 255, 13, 10, 13, 10], Array("1.1\r\n".utf8), Self.report, [UInt8](repeating: 65, count: 5000)] {
      let rig = try rig()
      let answer = try rig.answer(Self.report + rest)
      #expect(answer.status == 200 && answer.body == "" && answer.writes == 1)
      #expect(rig.store.user(18)?.heard == 3)
    }
  }

  @Test func `each fetch returns the next fact until there are no more`() throws {
    let rig = try rig(facts: [TriviaFact(1, "one"), TriviaFact(500, "a"), TriviaFact(501, "b"), TriviaFact(510, "c")])
    for text in ["a", "b", "c"] { #expect(try spoken(rig.answer(Self.fetch).bytes) == text) }
    for path in ["/Trivia/18", "/Trivia/17"] {
      let end = try rig.ask("GET", path)
      #expect(end.status == 404 && end.body == "" && end.fields["content-length"] == "0")
    }
    #expect(try rig.ask("POST", "/User/Login", #"{"email":"ada@example.org","password":"secret1"}"#).body.contains(#""triviaCount":510"#))
  }

  @Test func `the longest fact fits, and a fact that the toy cannot speak is not sent`() throws {
    let longest = String(repeating: "x", count: 500)
    let rig = try rig(
      facts: [TriviaFact(500, longest)]
        + ["a \"b\"", "é", "a\\", "a\nb", longest + "x", ""].enumerated().map {
          TriviaFact(501 + $0.offset, stored: $0.element)
        })
    let answer = try rig.answer(Self.fetch)
    #expect(spoken(answer.bytes) == longest && answer.bytes.count <= 1024)
    for id in 501...506 {
      let answer = try rig.answer(Self.fetch)
      #expect(answer.status == 500 && rig.output.contains("a toy cannot speak fact \(id)"))
    }
  }

  @Test func `a text is converted to what the toy can speak, or rejected`() {
    func made(_ text: String) -> String {
      do throws(ValueError) { return try TriviaFact(1, text).text } catch { return "! \(error.description)" }
    }
    #expect(made("It’s “so” \"so\" – über…\tnow ") == "It's 'so' 'so' - ueber... now")
    #expect(made("C:\\x") == "! a backslash, which the toy cannot speak: remove it")
    #expect(made("bees 🐝") == "! U+1F41D, which the toy cannot speak: write it in ASCII")
    #expect(made("a\u{0}b").hasPrefix("! U+0,") && made("a\u{7F}").hasPrefix("! U+7F,") && made("a\nb").hasPrefix("! U+A,"))
    #expect(made("  ") == "! no text: write a fact")
    #expect(made(String(repeating: "…", count: 166)).count == 498)
    #expect(made(String(repeating: "…", count: 167)) == "! 501 characters, more than 500")
  }

  @Test func `a file of facts has one fact per line, with optional IDs`() throws {
    let file = "\u{FEFF}One.\r\n\r\n17\tSeventeen.\nEighteen.\n  600\tnot an id\n"
    #expect(
      try TriviaFact.list(Array(file.utf8)) == [
        TriviaFact(500, "One."), TriviaFact(17, "Seventeen."), TriviaFact(18, "Eighteen."), TriviaFact(19, "600 not an id"),
      ])
    func refusal(_ file: [UInt8]) -> String? {
      do throws(ValueError) {
        _ = try TriviaFact.list(file)
        return nil
      } catch { return error.description }
    }
    let wrong = refusal(Array("fine\nbad \\\ngood\n500\tagain\n0\tnone\n".utf8))
    #expect(wrong?.hasPrefix("line 2 has a backslash") == true && wrong?.contains("; line 4 has the duplicate id 500") == true)
    #expect(wrong?.contains("line 3") == false && wrong?.contains("; line 5 has the id 0: ") == true)
    #expect(refusal(Array(String(repeating: "🐝\n", count: 12).utf8))?.hasSuffix("; and 2 more lines") == true)
    #expect(refusal([0xFF])?.hasPrefix("not UTF-8") == true && refusal([])?.hasPrefix("no facts in the file") == true)
  }

  @Test func `the built-in facts can be spoken, and have IDs below and above 499`() {
    #expect(TriviaFact.builtIn.allSatisfy { (try? TriviaFact.speakable($0.text)) == $0.text && $0.text.utf8.count <= 140 })
    #expect(Set(TriviaFact.builtIn.map(\.id)).count == TriviaFact.builtIn.count && TriviaFact.builtIn.count >= 40)
    #expect(TriviaFact.builtIn.contains { $0.id == 1 } && TriviaFact.builtIn.contains { $0.id == 500 })
    #expect(!TriviaFact.builtIn.contains { $0.id == 499 })
  }
}
