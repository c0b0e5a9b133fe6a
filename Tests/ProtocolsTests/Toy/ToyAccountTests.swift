// What an owner does with the toy's web server, against the simulated one and against answers of every sort.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct ToyAccountTests {
  private static let ada: [String: Value] = ["email": .string("ada@example.org"), "password": .string("secret1")]

  private func body(_ rig: ToyRig) -> String { rig.asked.last.map { String(decoding: $0.body, as: UTF8.self) } ?? "" }

  @Test func `an account is made, outlives the daemon, and is left again`() throws {
    var rig = try ToyRig.loggedIn()
    let request = try #require(rig.asked.first)
    #expect(request.method == "POST" && request.url == "https://triviotoy.azurewebsites.net/User/Register")
    #expect(request.headers["Content-Type"] == "application/json; charset=utf-8")
    #expect(body(rig) == #"{"name":"Ada","email":"ada@example.org","password":"secret1"}"#)
    #expect(rig.text("user-id") == "18" && rig.text("name") == "Ada" && rig.status == "ready")
    try rig.restart()
    #expect(rig.report(rig.run("whoami"))?.rows == [["18", "Ada", "ada@example.org", ""]])
    #expect(rig.asked.count == 1, "nothing is asked that nobody wants")
    #expect(rig.report(rig.run("logout"))?.text == "logged out")
    try rig.restart()
    #expect(rig.code(rig.run("whoami")) == "needs-login" && rig.status == "logged-out" && rig.disk.isEmpty)
    #expect(rig.report(rig.run("login", Self.ada))?.text == "logged in as user 18, Ada")
    #expect(!rig.words.contains { $0.contains("secret1") } && !"\(rig.disk)".contains("secret1"))
    #expect(!rig.disk.values.contains { String(decoding: $0, as: UTF8.self).contains("secret1") })
  }

  @Test func `what cannot be an account is refused before the server hears of it`() throws {
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
    #expect(rig.asked.isEmpty)
    for action in ["whoami", "history", "logout"] { #expect(rig.code(rig.run(action)) == "needs-login") }
    #expect(rig.code(rig.vote(1, "up")) == "needs-login" && rig.code(rig.run("fact", ["id": .int(1)])) == "needs-login")
  }

  @Test func `the server's refusals have words`() throws {
    var rig = try ToyRig.loggedIn()
    let wrong = rig.run("login", ["email": .string("ada@example.org"), "password": .string("wrong")])
    #expect(rig.code(wrong) == "wrong-password" && rig.refusal(wrong) == "wrong e-mail or password")
    let twice = rig.run("register", ["name": .string("Ada")].merging(Self.ada) { $1 })
    #expect(rig.refusal(twice).contains("Account with email ada@example.org already exists or invalid email"))
    #expect(rig.text("user-id") == "18", "who was logged in still is")
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
    (.answered(status: 405, type: "application/json", body: []), "request rejected (405): check server"),
  ]

  @Test(arguments: answers.indices) func `answers that are none are called what they are`(_ index: Int) throws {
    let (response, words) = Self.answers[index]
    var rig = try ToyRig()
    rig.start()
    rig.answer = { _ in response }
    let id = rig.run("login", Self.ada)
    #expect(rig.refusal(id).contains(words), "\(rig.refusal(id))")
    #expect(rig.asked.count == 1 && rig.status == "logged-out" && rig.disk.isEmpty)
  }

  @Test func `a number that comes as a text is one`() throws {
    var rig = try ToyRig()
    rig.start()
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"id":"18","extra":[1],"name":null}"#.utf8)) }
    #expect(rig.report(rig.run("login", Self.ada))?.text == "logged in as user 18")
    #expect(rig.absence("name") == "not reported by the server")
  }

  @Test func `the documented dialect has its own addresses and verbs`() throws {
    var rig = try ToyRig(["dialect": .string("documented")])
    rig.start()
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8)) }
    rig.run("login", Self.ada)
    #expect(rig.asked.last?.url.hasSuffix("/User/Register") == true && body(rig) == #"{"email":"ada@example.org","password":"secret1"}"#)
    rig.run("register", ["name": .string("Ada")].merging(Self.ada) { $1 })
    #expect(rig.asked.last?.url.hasSuffix("/User/Login") == true && body(rig).hasPrefix(#"{"username":"Ada","#))
    rig.vote(3, "up")
    #expect(rig.asked.last?.method == "POST" && rig.asked.last?.url.hasSuffix("/Trivia/Vote/3") == true)
  }

  @Test func `a token is stored, and sent to its server only`() throws {
    var rig = try ToyRig.loggedIn(facts: 1, requiresTokens: true)
    try rig.restart()
    #expect(rig.report(rig.run("history"))?.rows.count == 1)
    let token = try #require(rig.asked.last?.headers["Authorization"]?.dropFirst("Bearer ".count))
    #expect(token.count >= 32 && !rig.words.contains { $0.contains(token) })
    rig.answer = { _ in .answered(status: 401, type: nil, body: []) }
    #expect(rig.code(rig.run("history")) == "needs-login")
  }

  // MARK: Facts

  @Test func `the facts are listed, and shown with their age where the server does not answer`() throws {
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
    #expect(!rig.asked.contains { $0.url.contains("/18/") || $0.url.hasSuffix("/Trivia/18") }, "what changes the toy's state is the toy's")
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
    ] as [(String, [[String]])]) func `histories of every sort are read`(_ text: String, _ rows: [[String]]) throws
  {
    var rig = try ToyRig.loggedIn()
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: Array(text.utf8)) }
    #expect(rig.report(rig.run("history"))?.rows == rows)
  }

  @Test func `a huge list is read, and no list is none`() throws {
    var rig = try ToyRig.loggedIn()
    let rows = (1...5000).map { #"{"trivia":{"id":\#($0),"text":"Honey never spoils.","upvotes":1,"downvotes":0},"userVote":0}"# }
    let huge = Array("{\"triviaHistory\":[\(rows.joined(separator: ","))]}".utf8)
    rig.answer = { _ in .answered(status: 200, type: "application/json", body: huge) }
    #expect(rig.report(rig.run("history"))?.rows.count == 5000 && rig.text("facts") == "5000")
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"message":1}"#.utf8)) }
    #expect(rig.report(rig.run("history"))?.text?.contains("no list of facts") == true)
    rig.answer = { _ in .answered(status: 400, type: "text/html", body: Array("<html>".utf8)) }
    #expect(rig.report(rig.run("history"))?.rows.count == 5000, "what stands before the server knows no users")
    rig.answer = { _ in .answered(status: 400, type: nil, body: Array(#"{"message":"Invalid UserId"}"#.utf8)) }
    let forgotten = rig.run("history")
    #expect(
      rig.code(forgotten) == "no-account" && rig.refusal(forgotten).hasPrefix("user 18 no longer exists on the server (Invalid UserId): "))
    #expect(rig.refusal(forgotten).contains("vehiclectl toy register NAME EMAIL"))
  }

  @Test func `a documented login that creates an account is reported`() throws {
    // The simulated server is the original one: its /User/Register makes accounts.
    var rig = try ToyRig(["dialect": .string("documented")])
    rig.start()
    let text = rig.report(rig.run("login", Self.ada))?.text
    #expect(rig.asked.last?.url.hasSuffix("/User/Register") == true)
    #expect(
      text?.contains("created a new account instead of logging in") == true && text?.contains("dialect = \"original\"") == true,
      "\(text ?? "")")
  }

  // MARK: Votes

  @Test func `votes count, change and are withdrawn`() throws {
    var rig = try ToyRig.loggedIn(facts: 2)
    rig.run("history")
    #expect(rig.report(rig.vote(1, "up"))?.text == "fact 1: up (1 up, 0 down)")
    #expect(rig.asked.last?.method == "PUT" && body(rig) == #"{"userVote":1,"userId":18,"triviaId":1}"#)
    #expect(rig.report(rig.vote(1, "UP"))?.text == "fact 1: already voted that way")
    #expect(rig.report(rig.vote(1, "down"))?.text == "fact 1: down (0 up, 1 down)")
    #expect(rig.report(rig.vote(1, "clear"))?.text == "fact 1: none (0 up, 0 down)")
    #expect(rig.report(rig.vote(2, "down"))?.text == "fact 2: down (0 up, 1 down)")
    rig.isOffline = true
    #expect(rig.report(rig.run("history"))?.rows.map { $0[4] } == ["none", "down"], "the kept list knows of them")
    rig.isOffline = false
    let unheard = rig.vote(3, "up")
    #expect(rig.code(unheard) == "not-played" && rig.refusal(unheard).contains("User has not heard trivia yet"))
    #expect(rig.code(rig.vote(1, "sideways")) == "vote" && rig.text("pending-votes") == "0" && rig.disk["votes"] == nil)
  }

  @Test func `a vote on which the server always fails does not hold up the others`() throws {
    var rig = try ToyRig.loggedIn(facts: 3)
    rig.answer = { request in
      request.url.hasSuffix("/Vote/1")
        ? .answered(status: 500, type: "application/json", body: Array(#"{"message":"An error has occurred."}"#.utf8))
        : .answered(status: 204, type: nil, body: [])
    }
    let first = rig.vote(1, "up")
    #expect(rig.report(first)?.rows == [["1", "up", "waiting"]] && rig.report(first)?.text?.hasPrefix("stored, and sent when") == true)
    #expect(rig.report(rig.vote(2, "up"))?.rows == [["2", "up", "unchanged"]])
    // A later vote for the same fact waits for the earlier one, which is tried at once.
    #expect(rig.report(rig.vote(1, "down"))?.rows == [["1", "down", "waiting"]])
    #expect(rig.report(rig.vote(3, "down"))?.rows == [["3", "down", "unchanged"]])
    #expect(
      rig.text("pending-votes") == "2" && rig.status == "ready" && rig.fault?.hasPrefix("2 pending votes: the server failed") == true)
    let before = rig.asked.count
    rig.run(for: 3600 * .second)
    #expect((4...9).contains(rig.asked.count - before), "\(rig.asked.count - before)")
    #expect(rig.report(rig.vote(2, "down"))?.rows == [["2", "down", "unchanged"]], "however often it failed")
    rig.answer = { _ in .answered(status: 204, type: nil, body: []) }
    rig.run(for: 1800 * .second)
    #expect(rig.text("pending-votes") == "0" && rig.fault == nil && rig.asked.suffix(2).allSatisfy { $0.url.hasSuffix("/Vote/1") })
  }

  @Test func `a server that fails on every vote is not asked for each of them`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.isOffline = true
    for fact in 1...50 { rig.vote(fact, "up") }
    rig.isOffline = false
    rig.answer = { _ in .answered(status: 500, type: nil, body: []) }
    let before = rig.asked.count
    rig.run(for: 600 * .second)
    #expect(rig.asked.count - before < 20 && rig.text("pending-votes") == "50" && rig.status == "offline")
  }

  @Test func `a vote that waits has a mark`() throws {
    var rig = try ToyRig.loggedIn(facts: 2)
    rig.run("history")
    #expect(rig.report(rig.vote(1, "up"))?.rows == [["1", "up", "counted"]])
    rig.isOffline = true
    #expect(rig.report(rig.vote(2, "none"))?.rows == [["2", "none", "waiting"]])
    #expect(rig.report(rig.run("history"))?.rows.map { $0.suffix(2) } == [["up", ""], ["none", "yes"]])
  }

  @Test func `votes without a server are stored, survive a restart, and are sent once and in order`() throws {
    var rig = try ToyRig.loggedIn(facts: 3)
    rig.isOffline = true
    for (fact, vote) in [(1, "up"), (2, "down"), (1, "down")] {
      #expect(rig.report(rig.vote(fact, vote))?.text?.hasPrefix("stored, and sent when the server responds: ") == true)
    }
    #expect(rig.text("pending-votes") == "3" && rig.status == "offline" && rig.fault?.hasPrefix("3 pending votes: ") == true)
    let refused = rig.run("logout")
    #expect(rig.code(refused) == "votes-pending" && rig.refusal(refused).contains("3 votes"))
    try rig.restart()
    #expect(rig.text("pending-votes") == "3")
    rig.isOffline = false
    let before = rig.asked.count
    rig.run(for: 60 * .second)
    let sent = rig.asked[before...].map { String(decoding: $0.body, as: UTF8.self) }
    #expect(
      sent == [
        #"{"userVote":1,"userId":18,"triviaId":1}"#, #"{"userVote":-1,"userId":18,"triviaId":2}"#,
        #"{"userVote":-1,"userId":18,"triviaId":1}"#,
      ])
    #expect(rig.text("pending-votes") == "0" && rig.disk["votes"] == nil && rig.fault == nil && rig.status == "ready")
    #expect(rig.events.count == 3 && rig.text("last-vote") == "fact 1: down (0 up, 1 down)")
    rig.run(for: 3600 * .second)
    #expect(rig.asked.count == before + 3 && rig.machine.nextWake == nil)
  }

  @Test func `a server that does not answer is asked less and less often, and at once when it answers something else`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.isOffline = true
    rig.vote(1, "up")
    let before = rig.asked.count
    rig.run(for: 3600 * .second)
    #expect((5...9).contains(rig.asked.count - before), "\(rig.asked.count - before)")
    rig.isOffline = false
    rig.run("history")
    #expect(rig.text("pending-votes") == "0")
  }

  @Test func `a vote that the server rejects is dropped and reported, the next is sent`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.isOffline = true
    rig.vote(7, "up")
    rig.vote(1, "up")
    rig.isOffline = false
    rig.run(for: 120 * .second)
    #expect(rig.text("pending-votes") == "0" && rig.text("last-vote") == "fact 1: up (1 up, 0 down)")
    #expect(rig.events.first?.hasPrefix("pending vote failed: vote for fact 7 rejected") == true)
    // The path's number is not the body's, says the server: there is nothing in its answer.
    rig.answer = { _ in .answered(status: 400, type: nil, body: []) }
    #expect(rig.code(rig.vote(1, "down")) == "not-played" && rig.text("pending-votes") == "0")
    // Nor is what is said of another fact.
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"trivia":{"id":77,"text":"x"},"userVote":-1}"#.utf8)) }
    #expect(rig.report(rig.vote(1, "down"))?.text?.hasPrefix("stored") == true)
    rig.run("logout", ["delete-votes": .bool(true)])
    rig.answer = nil
    rig.run("login", Self.ada)
    // A web page is no refusal.
    rig.answer = { _ in .answered(status: 400, type: "text/html", body: Array("<html>".utf8)) }
    #expect(rig.report(rig.vote(1, "down"))?.text?.hasPrefix("stored") == true && rig.text("pending-votes") == "1")
    #expect(rig.report(rig.run("logout", ["delete-votes": .bool(true)]))?.text == "logged out")
    #expect(rig.text("pending-votes") == "0" && rig.disk.isEmpty && rig.fault == nil)
  }

  @Test(arguments: [403, 404, 410]) func `what the server's program refuses for good does not hold up the next, a page before it does`(
    _ status: Int
  ) throws {
    var rig = try ToyRig.loggedIn(facts: 2)
    rig.answer = { request in
      let isFirst = request.url.hasSuffix("/1")
      return .answered(
        status: isFirst ? status : 204, type: isFirst ? "application/problem+json" : nil,
        body: isFirst ? Array(#"{"message":"no"}"#.utf8) : [])
    }
    let refused = rig.vote(1, "up")
    #expect(rig.code(refused) == "refused" && rig.refusal(refused).contains("(\(status): no)"))
    #expect(rig.report(rig.vote(2, "up"))?.text == "fact 2: already voted that way")
    rig.answer = { _ in .answered(status: status, type: "text/html", body: Array("<html>".utf8)) }
    #expect(rig.report(rig.vote(1, "up"))?.text?.hasPrefix("stored") == true && rig.text("pending-votes") == "1")
  }

  @Test func `votes that wait are listed with the reason, and forgotten one by one, or those of others, or all`() throws {
    var rig = try ToyRig.loggedIn(facts: 3)
    #expect(rig.report(rig.run("votes"))?.text == "no pending votes")
    rig.isOffline = true
    for fact in 1...3 { rig.vote(fact, "up") }
    let rows = rig.report(rig.run("votes"))?.rows ?? []
    #expect(rows.map { $0[0] } == ["1", "2", "3"] && rows.allSatisfy { $0[4].hasPrefix("waiting: ") })
    #expect(rig.code(rig.run("votes", ["delete": .string("x")])) == "delete")
    #expect(rig.code(rig.run("votes", ["delete": .string("held")])) == "no-vote")
    #expect(rig.report(rig.run("votes", ["delete": .string("2")]))?.text == "1 vote deleted")
    #expect(rig.text("pending-votes") == "2")
    try rig.restart()
    #expect(rig.text("pending-votes") == "2")
    #expect(rig.report(rig.run("votes", ["delete": .string("all")]))?.text == "2 votes deleted")
    #expect(rig.text("pending-votes") == "0" && rig.disk["votes"] == nil)
    let before = rig.asked.count
    rig.isOffline = false
    rig.run(for: 3600 * .second)
    #expect(rig.asked.count == before)
  }

  @Test func `votes that are damaged on the disk are set aside`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.disk["votes"] = Array("[{".utf8)
    try rig.restart()
    #expect(rig.disk["votes-damaged"] == Array("[{".utf8) && rig.events.contains { $0.contains("votes") })
  }

  @Test func `a vote whose answer was lost is sent again, and is the same vote`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    let trivia = rig.trivia
    trivia.faults = [try TriviaFault("lost")]
    #expect(rig.report(rig.vote(1, "up"))?.text?.hasPrefix("stored") == true)
    trivia.faults = []
    rig.run(for: 60 * .second)
    #expect(rig.text("last-vote") == "fact 1: already voted that way")
  }

  @Test func `another server gets no data of this one`() throws {
    var rig = try ToyRig.loggedIn(facts: 2, requiresTokens: true)
    rig.run("history")
    rig.isOffline = true
    rig.vote(1, "up")
    rig.isOffline = false
    let before = rig.asked.count
    try rig.restart(["server": .string("https://elsewhere.example")])
    rig.run(for: 3600 * .second)
    #expect(rig.asked.count == before && rig.status == "logged-out" && rig.text("pending-votes") == "0")
    #expect(rig.code(rig.run("whoami")) == "needs-login" && rig.absence("facts") != nil)
    #expect(rig.events.contains { $0.hasPrefix("user 18 belongs to another server") })
    #expect(rig.events.contains { $0.hasPrefix("1 pending vote of other users or servers") })
    // Nothing was lost.
    try rig.restart()
    rig.run(for: 60 * .second)
    #expect(rig.text("last-vote") == "fact 1: up (1 up, 0 down)" && rig.text("user-id") == "18")
  }

  @Test func `the votes of one do not hold up those of another`() throws {
    var rig = try ToyRig.loggedIn(facts: 2, requiresTokens: true)
    rig.isOffline = true
    rig.vote(2, "up")
    rig.isOffline = false
    let other = rig.run("register", ["name": .string("Bob"), "email": .string("bob@example.org"), "password": .string("secret2")])
    #expect(rig.report(other)?.text == "registered and logged in as user 19" && rig.text("pending-votes") == "0")
    #expect(rig.events.last?.hasPrefix("1 pending vote of other users or servers") == true)
    _ = rig.trivia.exchange(Array("GET /User/History/19/1 HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
    let id = rig.vote(1, "down")
    #expect(rig.report(id)?.text == "fact 1: down (0 up, 1 down)" && rig.status == "ready")
    #expect(rig.report(rig.run("login", Self.ada))?.text == "logged in as user 18, Ada")
    #expect(rig.text("last-vote") == "fact 2: up (1 up, 0 down)" && rig.disk["votes"] == nil)
  }

  @Test func `a server that requires a login is reachable`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.answer = { _ in .answered(status: 401, type: nil, body: []) }
    rig.vote(1, "up")
    #expect(rig.status == "logged-out" && rig.fault?.contains("session has expired") == true && rig.text("pending-votes") == "1")
    rig.answer = nil
    rig.run("login", Self.ada)
    #expect(rig.status == "ready" && rig.text("pending-votes") == "0")
  }

  @Test func `who logs in once more is still the same`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.answer = { $0.method == "PUT" ? nil : .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8)) }
    let vote = rig.vote(1, "up")
    let request = try #require(rig.asked.last)
    rig.run("login", Self.ada)
    #expect(rig.results[vote] == nil, "its vote is on its way")
    rig.answer = nil
    rig.give(.response(2, .answered(status: 204, type: nil, body: [])))
    #expect(request.method == "PUT" && rig.report(vote)?.text == "fact 1: already voted that way")
  }

  @Test func `votes that wait are in the list that is shown`() throws {
    var rig = try ToyRig.loggedIn(facts: 2)
    rig.run("history")
    rig.isOffline = true
    rig.vote(2, "up")
    #expect(rig.report(rig.run("history"))?.rows.map { $0[4] } == ["none", "up"])
  }

  @Test func `what the disk does not take is not sent`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.diskWorks = false
    let before = rig.asked.count
    #expect(rig.code(rig.vote(1, "up")) == "not-stored" && rig.asked.count == before && rig.text("pending-votes") == "0")
  }

  @Test func `a logout that cannot be stored is reported`() throws {
    var rig = try ToyRig.loggedIn()
    rig.diskWorks = false
    let id = rig.run("logout")
    #expect(rig.code(id) == "not-stored" && rig.refusal(id) == "logged out, but not stored, so the next start will not know it: no space")
  }

  // MARK: Waiting

  @Test func `waiting for a slow server is reported, and two logins exclude each other`() throws {
    var rig = try ToyRig()
    rig.start()
    rig.answer = { _ in nil }
    let id = rig.run("login", Self.ada)
    rig.run(for: 16 * .second)
    #expect(rig.progress[id]?.count == 3 && rig.progress[id]?.first?.text == "waiting for triviotoy.azurewebsites.net")
    #expect(rig.code(rig.run("login", Self.ada)) == "busy")
    rig.cancel(id)
    rig.give(.response(1, .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8))))
    #expect(rig.results[id] == nil && rig.status == "logged-out", "whoever gave up is not logged in")
    rig.run(for: 60 * .second)
    #expect(rig.machine.nextWake == nil)
    let other = rig.run("login", Self.ada)
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
    #expect(rig.events.first == "stored settings are damaged: history, votes reset to unset; set them again")
    #expect(rig.text("user-id") == "18" && rig.asked.count == 1, "the vote that can be read goes out")
  }

  @Test func `options that cannot be are named`() throws {
    func refusal(_ options: [String: Value]) -> String? {
      do throws(OptionError) { _ = try Kind.toy.make(Setup(options: options.merging(defaults) { a, _ in a })) } catch {
        return error.option
      }
      return nil
    }
    let defaults = Dictionary(uniqueKeysWithValues: Kind.toy.options.compactMap { option in option.fallback.map { (option.name, $0) } })
    #expect(refusal([:]) == nil)
    #expect(refusal(["server": .string("http://10.0.0.1")]) == "server")
    #expect(refusal(["server": .string("http://10.0.0.1"), "insecure-http": .bool(true)]) == nil)
    #expect(refusal(["server": .string("https://me:secret@10.0.0.1/x")]) == "server")
    for place in ["8080", "0.0.0.0", "0.0.0.0:0", "0.0.0.0:70000", "localhost:8080", "0.0.0.0/8:8080"] {
      #expect(refusal(["listen": .string(place)]) == "listen", "\(place)")
    }
    #expect(refusal(["toy-network": .string("192.168.4")]) == "toy-network" && refusal(["proxy": .string("x")]) == "proxy")
  }

  @Test func `any answer to any question is survived, and every command ends once`() throws {
    var noise = Noise(seed: 7)
    for _ in 0..<300 {
      var rig = try ToyRig()
      rig.start()
      rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8)) }
      rig.run("login", Self.ada)
      var ids: [CommandID] = []
      for _ in 0..<12 {
        var body = Array(#"{"triviaHistory":[{"trivia":{"id":1,"text":"x","upvotes":2},"userVote":1}],"id":3}"#.utf8)
        for _ in 0..<(noise.next() % 6) { body[Int(noise.next() % UInt64(body.count))] = UInt8(noise.next() & 0xFF) }
        let status = [200, 201, 204, 301, 400, 401, 404, 500][Int(noise.next() % 8)]
        rig.answer = { _ in .answered(status: status, type: nil, body: body) }
        switch noise.next() % 6 {
        case 0: ids.append(rig.run("history"))
        case 1: ids.append(rig.vote(1, "up"))
        case 2: ids.append(rig.run("login", Self.ada))
        case 3: ids.append(rig.run("fact", ["id": .int(1)]))
        case 4: rig.run(for: Nanoseconds(noise.next() % 1000) * .second)
        default: try rig.restart()
        }
      }
      #expect(ids.allSatisfy { rig.results[$0]?.count == 1 })
    }
  }
}
