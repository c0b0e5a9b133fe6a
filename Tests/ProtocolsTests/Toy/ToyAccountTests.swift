// Accounts, facts and votes on the toy's web server, with the simulated one and with arbitrary responses.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct ToyAccountTests {
  @Test func `an account is created, restored after a restart, and logged out`() throws {
    var rig = try ToyRig.loggedIn()
    let request = try #require(rig.requests.first)
    #expect(request.method == "POST" && request.url == "https://triviotoy.azurewebsites.net/User/Register")
    #expect(request.headers["Content-Type"] == "application/json; charset=utf-8")
    #expect(rig.body == #"{"name":"Ada","email":"ada@example.org","password":"secret1"}"#)
    #expect(rig.text("user-id") == "18" && rig.text("name") == "Ada" && rig.status == "ready")
    try rig.restart()
    #expect(rig.report(rig.run("whoami"))?.rows == [["18", "Ada", "ada@example.org", ""]])
    #expect(rig.requests.count == 1, "no request is sent without a command")
    #expect(rig.report(rig.run("logout"))?.text == "logged out")
    try rig.restart()
    #expect(rig.code(rig.run("whoami")) == "needs-login" && rig.status == "logged-out" && rig.disk.isEmpty)
    #expect(rig.report(rig.run("login", ToyRig.ada))?.text == "logged in as user 18, Ada")
    #expect(!rig.output.contains { $0.contains("secret1") } && !"\(rig.disk)".contains("secret1"))
    #expect(!rig.disk.values.contains { String(decoding: $0, as: UTF8.self).contains("secret1") })
  }

  @Test func `invalid account data is rejected without a request`() throws {
    var rig = try ToyRig()
    rig.start()
    let wrong: [(String, String, String, String)] = [
      ("", "a@b.cd", "x", "name"), ("A\nB", "a@b.cd", "x", "name"), ("Ada", "ada", "x", "email"), ("Ada", "a@b@c", "x", "email"),
      ("Ada", "@b.cd", "x", "email"), ("Ada", String(repeating: "a", count: 50) + "@b.cd", "x", "email"), ("Ada", "a@b.cd", "", "password"),
    ]
    for (name, email, password, argument) in wrong {
      let id = rig.run("register", ["name": .string(name), "email": .string(email), "password": .string(password)])
      #expect(rig.code(id) == argument)
    }
    #expect(rig.requests.isEmpty)
    for action in ["whoami", "history", "logout"] { #expect(rig.code(rig.run(action)) == "needs-login") }
    #expect(rig.code(rig.vote(1, "up")) == "needs-login" && rig.code(rig.run("fact", ["id": .int(1)])) == "needs-login")
  }

  @Test func `a rejection by the server is reported with its reason`() throws {
    var rig = try ToyRig.loggedIn()
    let wrong = rig.run("login", ["email": .string("ada@example.org"), "password": .string("wrong")])
    #expect(rig.code(wrong) == "wrong-password" && rig.refusal(wrong) == "wrong e-mail or password")
    let twice = rig.run("register", ["name": .string("Ada")].merging(ToyRig.ada) { $1 })
    #expect(rig.refusal(twice).contains("Account with email ada@example.org already exists or invalid email"))
    #expect(rig.text("user-id") == "18", "the current login is unchanged")
  }

  private static let answers: [(HTTPResponse, String)] = [
    (.failed("it cannot be reached"), "it cannot be reached"),
    (.answered(status: 404, type: "text/html", body: Array("<html>".utf8)), "a web page"),
    (.answered(status: 200, type: "text/html", body: Array("<html>".utf8)), "a web page"),
    (.answered(status: 302, type: "text/html", body: Array("<html>".utf8)), "redirects (302), which is not supported"),
    (.answered(status: 503, type: "text/html", body: Array("<html>".utf8)), "failed (503)"),
    (.answered(status: 400, type: "text/html", body: Array("<html>".utf8)), "a web page"),
    (.answered(status: 302, type: nil, body: []), "redirects (302), which is not supported"),
    (.answered(status: 500, type: "application/json", body: Array(#"{"message":"An error has occurred."}"#.utf8)), "failed (500)"),
    (.answered(status: 200, type: "application/json", body: Array(#"{"name":"Ada"}"#.utf8)), "no user number"),
    (.answered(status: 200, type: "application/json", body: Array(#"{"id":null}"#.utf8)), "no user number"),
    (.answered(status: 200, type: "application/json", body: Array("[]".utf8)), "not an object"),
    (.answered(status: 200, type: nil, body: Array("{".utf8)), "invalid JSON"),
    (.answered(status: 200, type: nil, body: []), "invalid JSON"),
    (.answered(status: 405, type: "application/json", body: []), "request rejected (405): check the key `server`"),
  ]

  @Test(arguments: answers.indices) func `an invalid response is reported with its cause`(_ index: Int) throws {
    let (response, words) = Self.answers[index]
    var rig = try ToyRig()
    rig.start()
    rig.answer = { _ in response }
    let id = rig.run("login", ToyRig.ada)
    #expect(rig.refusal(id).contains(words), "\(rig.refusal(id))")
    #expect(rig.requests.count == 1 && rig.status == "logged-out" && rig.disk.isEmpty)
  }

  @Test func `a user number that is a string is parsed`() throws {
    var rig = try ToyRig()
    rig.start()
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"id":"18","extra":[1],"name":null}"#.utf8)) }
    #expect(rig.report(rig.run("login", ToyRig.ada))?.text == "logged in as user 18")
    #expect(rig.absence("name") == "not reported by the server")
  }

  @Test func `the documented dialect has its own paths and methods`() throws {
    var rig = try ToyRig(["dialect": .string("documented")])
    rig.start()
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8)) }
    rig.run("login", ToyRig.ada)
    #expect(rig.requests.last?.url.hasSuffix("/User/Register") == true && rig.body == #"{"email":"ada@example.org","password":"secret1"}"#)
    rig.run("register", ["name": .string("Ada")].merging(ToyRig.ada) { $1 })
    #expect(rig.requests.last?.url.hasSuffix("/User/Login") == true && rig.body.hasPrefix(#"{"username":"Ada","#))
    rig.vote(3, "up")
    #expect(rig.requests.last?.method == "POST" && rig.requests.last?.url.hasSuffix("/Trivia/Vote/3") == true)
  }

  @Test func `a token is stored, and sent to its server only`() throws {
    var rig = try ToyRig.loggedIn(facts: 1, requiresTokens: true)
    try rig.restart()
    #expect(rig.report(rig.run("history"))?.rows.count == 1)
    let token = try #require(rig.requests.last?.headers["Authorization"]?.dropFirst("Bearer ".count))
    #expect(token.count >= 32 && !rig.output.contains { $0.contains(token) })
    rig.answer = { _ in .answered(status: 401, type: nil, body: []) }
    #expect(rig.code(rig.run("history")) == "needs-login")
  }

  // MARK: Facts

  @Test func `the facts are listed, and with their age if the server does not respond`() throws {
    var rig = try ToyRig.loggedIn(facts: 3)
    let rows = try #require(rig.report(rig.run("history"))?.rows)
    #expect(rows.map { $0[0] } == ["1", "2", "3"] && rows.allSatisfy { $0.suffix(2) == ["none", ""] })
    #expect(rig.text("facts") == "3" && rig.report(rig.run("fact", ["id": .int(2)]))?.rows == [rows[1]])
    #expect(rig.code(rig.run("fact", ["id": .int(9)])) == "not-played" && rig.code(rig.run("fact", ["id": .int(0)])) == "id")
    rig.isOffline = true
    rig.run(for: 600 * .second)
    let old = try #require(rig.report(rig.run("history")))
    #expect(old.rows == rows && old.text == "as of 10 min ago: triviotoy.azurewebsites.net cannot be reached")
    try rig.restart(after: 3600 * .second)
    #expect(rig.report(rig.run("history"))?.text?.hasPrefix("as of 1 h ago: ") == true && rig.text("facts") == "3")
    #expect(rig.ages["facts"].map { (4100 * .second...4300 * .second).contains($0) } == true)
    #expect(rig.report(rig.run("fact", ["id": .int(1)]))?.rows == [rows[0]])
    rig.run("logout")
    #expect(rig.absence("facts") != nil && rig.disk.isEmpty)
    #expect(
      !rig.requests.contains { $0.url.contains("/18/") || $0.url.hasSuffix("/Trivia/18") },
      "only the toy sends requests that change its state"
    )
  }

  @Test(
    arguments: [
      (#"{"triviaHistory":[]}"#, []),
      (
        #"{"triviaHistory":[{"trivia":{"id":1,"text":null},"userVote":1},{"trivia":{"id":"2","text":"B","upvotes":-1}},{"trivia":{}},7]}"#,
        [["1", "(no text from the server)", "0", "0", "up", ""], ["2", "B", "0", "0", "none", ""]]
      ),
      (
        #"{"triviaHistory":[{"trivia":{"id":1,"text":"A"}},{"trivia":{"id":1,"text":"A"},"userVote":-1}],"more":1}"#,
        [["1", "A", "0", "0", "down", ""]]
      ),
      (#"[{"triviaId":5,"triviaText":"C","userAction":1}]"#, [["5", "C", "0", "0", "up", ""]]),
      (#"{"triviaHistory":[{"trivia":{"id":1,"text":"a\u001b[2Jb\nc"},"userVote":7}]}"#, [["1", "a[2Jbc", "0", "0", "none", ""]]),
    ] as [(String, [[String]])]) func `histories in every format are read`(_ text: String, _ rows: [[String]]) throws
  {
    var rig = try ToyRig.loggedIn()
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: Array(text.utf8)) }
    #expect(rig.report(rig.run("history"))?.rows == rows)
  }

  @Test func `a huge list is read, and a response without a list is rejected`() throws {
    var rig = try ToyRig.loggedIn()
    let rows = (1...5000).map { #"{"trivia":{"id":\#($0),"text":"Honey never spoils.","upvotes":1,"downvotes":0},"userVote":0}"# }
    let huge = Array("{\"triviaHistory\":[\(rows.joined(separator: ","))]}".utf8)
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: huge) }
    #expect(rig.report(rig.run("history"))?.rows.count == 5000 && rig.text("facts") == "5000")
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"message":1}"#.utf8)) }
    #expect(rig.report(rig.run("history"))?.text?.contains("no list of facts") == true)
    rig.answer = { _ in .answered(status: 400, type: "text/html", body: Array("<html>".utf8)) }
    #expect(rig.report(rig.run("history"))?.rows.count == 5000, "a web page is not a response of the server")
    rig.answer = { _ in .answered(status: 400, type: nil, body: Array(#"{"message":"Invalid UserId"}"#.utf8)) }
    let forgotten = rig.run("history")
    #expect(
      rig.code(forgotten) == "no-account" && rig.refusal(forgotten).hasPrefix("user 18 no longer exists on the server (Invalid UserId): "))
    #expect(rig.refusal(forgotten).contains("vehiclectl toy register NAME EMAIL"))
  }

  @Test func `a documented login that creates an account is reported`() throws {
    // The simulated server has the original dialect, in which /User/Register creates accounts.
    var rig = try ToyRig(["dialect": .string("documented")])
    rig.start()
    let text = rig.report(rig.run("login", ToyRig.ada))?.text
    #expect(rig.requests.last?.url.hasSuffix("/User/Register") == true)
    #expect(
      text?.contains("created a new account instead of logging in") == true && text?.contains("dialect = \"original\"") == true,
      "\(text ?? "")")
  }

  // MARK: Waiting

  @Test func `waiting for a slow server is reported, and two logins exclude each other`() throws {
    var rig = try ToyRig()
    rig.start()
    rig.answer = { _ in nil }
    let id = rig.run("login", ToyRig.ada)
    rig.run(for: 16 * .second)
    #expect(rig.progress[id]?.count == 3 && rig.progress[id]?.first?.text == "waiting for triviotoy.azurewebsites.net")
    #expect(rig.code(rig.run("login", ToyRig.ada)) == "busy")
    rig.cancel(id)
    rig.give(.response(1, .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8))))
    #expect(rig.results[id] == nil && rig.status == "logged-out", "a cancelled login has no effect")
    rig.run(for: 60 * .second)
    #expect(rig.machine.nextWake == nil)
    let other = rig.run("login", ToyRig.ada)
    rig.give(.stopping)
    #expect(rig.code(other) == "not-connected" && rig.hasStopped && rig.machine.nextWake == nil)
  }

  @Test func `damaged state is reported, and nothing else is lost`() throws {
    var rig = try ToyRig()
    rig.give(
      .started(
        restored: [
          "session": Array(#"{"id":18,"server":"https://triviotoy.azurewebsites.net"}"#.utf8), "history": [0xFF],
          "votes": Array(#"[{"server":"https://triviotoy.azurewebsites.net","user":18,"fact":1,"vote":1},{"vote":9}]"#.utf8),
        ],
        wall: WallTime(microseconds: 0)))
    #expect(rig.events.first == "stored settings are corrupt and were discarded: history, votes; set them again")
    #expect(rig.text("user-id") == "18" && rig.requests.count == 1, "the valid vote is sent")
  }

  @Test func `invalid options are reported by name`() throws {
    func refusal(_ options: [String: Value]) -> String? {
      do throws(OptionError) { _ = try Kind.toy.make(Setup(options: options.merging(defaults) { a, _ in a })) } catch {
        return error.option
      }
      return nil
    }
    let defaults = Dictionary(uniqueKeysWithValues: Kind.toy.options.compactMap { option in option.defaultValue.map { (option.name, $0) } })
    #expect(refusal([:]) == nil)
    #expect(refusal(["server": .string("http://10.0.0.1")]) == "server")
    #expect(refusal(["server": .string("http://10.0.0.1"), "insecure-http": .bool(true)]) == nil)
    #expect(refusal(["server": .string("https://me:secret@10.0.0.1/x")]) == "server")
    for place in ["8080", "0.0.0.0", "0.0.0.0:0", "0.0.0.0:70000", "localhost:8080", "0.0.0.0/8:8080"] {
      #expect(refusal(["listen": .string(place)]) == "listen", "\(place)")
    }
    #expect(refusal(["toy-network": .string("192.168.4")]) == "toy-network" && refusal(["proxy": .string("x")]) == "proxy")
  }

  @Test func `no response crashes the machine, and every command completes once`() throws {
    var random = SeededRandom(seed: 7)
    for _ in 0..<300 {
      var rig = try ToyRig()
      rig.start()
      rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8)) }
      rig.run("login", ToyRig.ada)
      var ids: [CommandID] = []
      for _ in 0..<12 {
        var body = Array(#"{"triviaHistory":[{"trivia":{"id":1,"text":"x","upvotes":2},"userVote":1}],"id":3}"#.utf8)
        for _ in 0..<(random.next() % 6) { body[Int(random.next() % UInt64(body.count))] = UInt8(random.next() & 0xFF) }
        let status = [200, 201, 204, 301, 400, 401, 404, 500][Int(random.next() % 8)]
        rig.answer = { _ in .answered(status: status, type: nil, body: body) }
        switch random.next() % 6 {
        case 0: ids.append(rig.run("history"))
        case 1: ids.append(rig.vote(1, "up"))
        case 2: ids.append(rig.run("login", ToyRig.ada))
        case 3: ids.append(rig.run("fact", ["id": .int(1)]))
        case 4: rig.run(for: Nanoseconds(random.next() % 1000) * .second)
        default: try rig.restart()
        }
      }
      #expect(ids.allSatisfy { rig.results[$0]?.count == 1 })
    }
  }
}
