import Testing

@testable import Peers
@testable import Protocols

/// Passwords and tokens: access, storage and redaction.
@Suite struct TriviaSecretTests {
  @Test func `a password is stored as a salted hash`() throws {
    let one = try TriviaPassword("secret1", salt: [1, 2, 3], rounds: 2)
    let other = try TriviaPassword("secret1", salt: [1, 2, 4], rounds: 2)
    #expect(one.matches("secret1") && other.matches("secret1") && one.text != other.text)
    for wrong in ["", "secret", "secret11", "Secret1"] { #expect(!one.matches(wrong)) }
    #expect(one.text.hasPrefix("scrypt:2:010203:") && !one.text.contains("secret"))
    #expect("\(one)" == "(a hashed password)" && String(reflecting: one) == "(a hashed password)")
    let again = try #require(TriviaPassword(text: one.text))
    #expect(again.matches("secret1") && !again.matches("secret2") && again.text == one.text)
    for text in ["", "scrypt:2:0102", "scrypt:2:0:" + one.text.suffix(64), "plain:2:01:" + one.text.suffix(64), "scrypt:2:01:0x", ":::"] {
      #expect(TriviaPassword(text: text) == nil, "\(text)")
    }
    for rounds in [0, 1, 3, 32_768, -2] { #expect(throws: ValueError.self) { try TriviaPassword("x", salt: [], rounds: rounds) } }
  }

  @Test func `scrypt matches a reference implementation`() throws {
    // RFC 7914 §12 has vectors with other parameters only; this one is from Python's hashlib.scrypt (n=16, r=8, p=1).
    let password = try TriviaPassword("pleaseletmein", salt: Array("SodiumChloride".utf8), rounds: 16)
    let key = "25a9fa207f87ca09a4ef8b9f777aca16beb784ae1830bfbfd38325aabb9377df"
    #expect(password.text == "scrypt:16:536f6469756d43686c6f72696465:\(key)")
  }

  @Test func `passwords and tokens are redacted in the output`() throws {
    let rig = TriviaRig(requiresTokens: true)
    let body = #"{"name":"Ada","email":"ada@example.org","password":"hunter22"}"#
    let request = Array("POST /User/Register?password=hunter22 HTTP/1.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    for split in 1..<request.count { _ = try rig.answer(request, split: split) }
    let login = try rig.ask("POST", "/User/Login", #"{"email":"ada@example.org","password":"hunter22"}"#)
    let token = try #require(JSON(login.body)?["token"]?.string)
    _ = try rig.ask("GET", "/User/History/18", token: token)
    _ = rig.exchange(Array("\(body)\r\n\r\n".utf8))
    #expect(
      rig.output.contains("POST /User/Register") && rig.output.contains("GET /User/History/18") && rig.output.contains("triviaHistory"))
    for part in ["hunter", "unter22", String(token.prefix(8))] { #expect(!rig.output.contains(part)) }
  }

  @Test func `with tokens a user cannot read or vote for others, and toys need none`() throws {
    let rig = TriviaRig(requiresTokens: true)
    let answers = [try rig.register(), try rig.register("bob@example.org")]
    let tokens = answers.compactMap { JSON($0.body)?["token"]?.string }
    #expect(tokens.count == 2 && tokens[0] != tokens[1] && tokens.allSatisfy { $0.utf8.count == 32 })
    #expect(answers[0].body.hasPrefix(#"{"id":18,"name":"Ada","email":"ada@example.org","triviaCount":499,"token":""#))
    let hash = try TriviaToken.hash(tokens[0])
    #expect(rig.store.owner(of: tokens[0]) == nil && rig.store.owner(of: hash) == 18)
    #expect(try rig.ask("GET", "/User/History/18/2").status == 200)
    #expect(try rig.ask("GET", "/Trivia/18").status == 200)
    let vote = #"{"userVote":1,"userId":18,"triviaId":1}"#
    for token in [nil, tokens[1], "x", "", hash] {
      for answer in [try rig.ask("GET", "/User/History/18", token: token), try rig.ask("PUT", "/Trivia/Vote/1", vote, token: token)] {
        #expect(answer.status == 401 && answer.body.hasPrefix(#"{"message":""#) && answer.fields["www-authenticate"] == "Bearer")
      }
    }
    #expect(try rig.ask("GET", "/User/History/99", token: tokens[0]).status == 401)
    #expect(try rig.ask("PUT", "/Trivia/Vote/1", vote, token: tokens[0]).status == 200)
    #expect(try rig.ask("GET", "/User/History/18", token: tokens[0]).body.contains(#""userVote":1"#))
  }

  @Test func `a user has at most sixteen tokens, and another login revokes the oldest`() throws {
    let rig = TriviaRig(requiresTokens: true)
    let first = try #require(JSON(try rig.register().body)?["token"]?.string)
    let others = try (0..<16).map { number in
      if number == 15 { #expect(try rig.ask("GET", "/User/History/18", token: first).status == 200) }
      return try #require(
        JSON(try rig.ask("POST", "/User/Login", #"{"email":"ada@example.org","password":"secret1"}"#).body)?["token"]?.string)
    }
    #expect(try rig.ask("GET", "/User/History/18", token: first).status == 401)
    for token in others { #expect(try rig.ask("GET", "/User/History/18", token: token).status == 200) }
  }
}
