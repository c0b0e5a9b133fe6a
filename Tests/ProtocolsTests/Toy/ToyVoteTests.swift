// Votes on the toy's facts, and pending votes, with the simulated server and with other responses.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct ToyVoteTests {
  @Test func `a vote is counted, changed and withdrawn`() throws {
    var rig = try ToyRig.loggedIn(facts: 2)
    rig.run("history")
    #expect(rig.report(rig.vote(1, "up"))?.text == "fact 1: up (1 up, 0 down)")
    #expect(rig.requests.last?.method == "PUT" && rig.body == #"{"userVote":1,"userId":18,"triviaId":1}"#)
    #expect(rig.report(rig.vote(1, "UP"))?.text == "fact 1: already voted that way")
    #expect(rig.report(rig.vote(1, "down"))?.text == "fact 1: down (0 up, 1 down)")
    #expect(rig.report(rig.vote(1, "clear"))?.text == "fact 1: none (0 up, 0 down)")
    #expect(rig.report(rig.vote(2, "down"))?.text == "fact 2: down (0 up, 1 down)")
    rig.isOffline = true
    #expect(rig.report(rig.run("history"))?.rows.map { $0[4] } == ["none", "down"], "the stored history has the votes")
    rig.isOffline = false
    let unheard = rig.vote(3, "up")
    #expect(rig.code(unheard) == "not-played" && rig.refusal(unheard).contains("User has not heard trivia yet"))
    #expect(rig.code(rig.vote(1, "sideways")) == "vote" && rig.text("pending-votes") == "0" && rig.disk["votes"] == nil)
  }

  @Test func `a vote on which the server always fails does not delay the others`() throws {
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
    let before = rig.requests.count
    rig.run(for: 3600 * .second)
    #expect((4...9).contains(rig.requests.count - before), "\(rig.requests.count - before)")
    #expect(rig.report(rig.vote(2, "down"))?.rows == [["2", "down", "unchanged"]], "repeated failures do not matter")
    rig.answer = { _ in .answered(status: 204, type: nil, body: []) }
    rig.run(for: 1800 * .second)
    #expect(rig.text("pending-votes") == "0" && rig.fault == nil && rig.requests.suffix(2).allSatisfy { $0.url.hasSuffix("/Vote/1") })
  }

  @Test func `if the server fails on every vote, all votes wait`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.isOffline = true
    for fact in 1...50 { rig.vote(fact, "up") }
    rig.isOffline = false
    rig.answer = { _ in .answered(status: 500, type: nil, body: []) }
    let before = rig.requests.count
    rig.run(for: 600 * .second)
    #expect(rig.requests.count - before < 20 && rig.text("pending-votes") == "50" && rig.status == "offline")
  }

  @Test func `a pending vote is marked in the history`() throws {
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
    let before = rig.requests.count
    rig.run(for: 60 * .second)
    let sent = rig.requests[before...].map { String(decoding: $0.body, as: UTF8.self) }
    #expect(
      sent == [
        #"{"userVote":1,"userId":18,"triviaId":1}"#, #"{"userVote":-1,"userId":18,"triviaId":2}"#,
        #"{"userVote":-1,"userId":18,"triviaId":1}"#,
      ])
    #expect(rig.text("pending-votes") == "0" && rig.disk["votes"] == nil && rig.fault == nil && rig.status == "ready")
    #expect(rig.events.count == 3 && rig.text("last-vote") == "fact 1: down (0 up, 1 down)")
    rig.run(for: 3600 * .second)
    #expect(rig.requests.count == before + 3 && rig.machine.nextWake == nil)
  }

  @Test func `retries become less frequent, and a response to another request ends the delay`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.isOffline = true
    rig.vote(1, "up")
    let before = rig.requests.count
    rig.run(for: 3600 * .second)
    #expect((5...9).contains(rig.requests.count - before), "\(rig.requests.count - before)")
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
    // 400 without a body: the server rejects the numbers.
    rig.answer = { _ in .answered(status: 400, type: nil, body: []) }
    #expect(rig.code(rig.vote(1, "down")) == "not-played" && rig.text("pending-votes") == "0")
    // A response about another fact is invalid.
    rig.answer = { _ in .answered(status: 200, type: nil, body: Array(#"{"trivia":{"id":77,"text":"x"},"userVote":-1}"#.utf8)) }
    #expect(rig.report(rig.vote(1, "down"))?.text?.hasPrefix("stored") == true)
    rig.run("logout", ["delete-votes": .bool(true)])
    rig.answer = nil
    rig.run("login", ToyRig.ada)
    // A web page is not a response of the server.
    rig.answer = { _ in .answered(status: 400, type: "text/html", body: Array("<html>".utf8)) }
    #expect(rig.report(rig.vote(1, "down"))?.text?.hasPrefix("stored") == true && rig.text("pending-votes") == "1")
    #expect(rig.report(rig.run("logout", ["delete-votes": .bool(true)]))?.text == "logged out")
    #expect(rig.text("pending-votes") == "0" && rig.disk.isEmpty && rig.fault == nil)
  }

  @Test(arguments: [403, 404, 410]) func `a vote that the server rejects is dropped, and one that a proxy rejects waits`(
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
    #expect(rig.code(refused) == "rejected" && rig.refusal(refused).contains("(\(status): no)"))
    #expect(rig.report(rig.vote(2, "up"))?.text == "fact 2: already voted that way")
    rig.answer = { _ in .answered(status: status, type: "text/html", body: Array("<html>".utf8)) }
    #expect(rig.report(rig.vote(1, "up"))?.text?.hasPrefix("stored") == true && rig.text("pending-votes") == "1")
  }

  @Test func `pending votes are listed with the reason, and deleted by fact, by state, or all`() throws {
    var rig = try ToyRig.loggedIn(facts: 3)
    #expect(rig.report(rig.run("votes"))?.text == "no pending votes")
    rig.isOffline = true
    for fact in 1...3 { rig.vote(fact, "up") }
    let rows = rig.report(rig.run("votes"))?.rows ?? []
    #expect(rows.map { $0[0] } == ["1", "2", "3"] && rows.allSatisfy { $0[4].hasPrefix("waiting: ") })
    #expect(rig.code(rig.run("votes", ["delete": .string("x")])) == "delete")
    #expect(rig.report(rig.run("votes", ["delete": .string("held")]))?.text == "no pending votes" && rig.text("pending-votes") == "3")
    #expect(rig.code(rig.run("votes", ["delete": .string("7")])) == "no-vote")
    #expect(rig.report(rig.run("votes", ["delete": .string("2")]))?.text == "1 vote deleted")
    #expect(rig.text("pending-votes") == "2")
    try rig.restart()
    #expect(rig.text("pending-votes") == "2")
    #expect(rig.report(rig.run("votes", ["delete": .string("all")]))?.text == "2 votes deleted")
    #expect(rig.text("pending-votes") == "0" && rig.disk["votes"] == nil)
    #expect(rig.report(rig.run("votes", ["delete": .string("all")]))?.text == "no pending votes")
    let before = rig.requests.count
    rig.isOffline = false
    rig.run(for: 3600 * .second)
    #expect(rig.requests.count == before)
  }

  @Test func `damaged stored votes are kept for inspection`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.disk["votes"] = Array("[{".utf8)
    try rig.restart()
    #expect(rig.disk["votes-damaged"] == Array("[{".utf8) && rig.events.contains { $0.contains("votes") })
  }

  @Test func `a vote whose response was lost is sent again without effect`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    let trivia = rig.trivia
    trivia.faults = [try TriviaFault("lost")]
    #expect(rig.report(rig.vote(1, "up"))?.text?.hasPrefix("stored") == true)
    trivia.faults = []
    rig.run(for: 60 * .second)
    #expect(rig.text("last-vote") == "fact 1: already voted that way")
  }

  @Test func `another server receives no data of this one`() throws {
    var rig = try ToyRig.loggedIn(facts: 2, requiresTokens: true)
    rig.run("history")
    rig.isOffline = true
    rig.vote(1, "up")
    rig.isOffline = false
    let before = rig.requests.count
    try rig.restart(["server": .string("https://elsewhere.example")])
    rig.run(for: 3600 * .second)
    #expect(rig.requests.count == before && rig.status == "logged-out" && rig.text("pending-votes") == "0")
    #expect(rig.code(rig.run("whoami")) == "needs-login" && rig.absence("facts") != nil)
    #expect(rig.events.contains { $0.hasPrefix("user 18 belongs to another server") })
    #expect(rig.eventNames.contains("server-mismatch"))
    #expect(rig.events.contains { $0.hasPrefix("1 pending vote of other users or servers") })
    // With the first server again, no vote is lost.
    try rig.restart()
    rig.run(for: 60 * .second)
    #expect(rig.text("last-vote") == "fact 1: up (1 up, 0 down)" && rig.text("user-id") == "18")
  }

  @Test func `the votes of one user do not delay those of another`() throws {
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
    #expect(rig.report(rig.run("login", ToyRig.ada))?.text == "logged in as user 18, Ada")
    #expect(rig.text("last-vote") == "fact 2: up (1 up, 0 down)" && rig.disk["votes"] == nil)
  }

  @Test func `a server that requires a login is reachable`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.answer = { _ in .answered(status: 401, type: nil, body: []) }
    rig.vote(1, "up")
    #expect(rig.status == "logged-out" && rig.fault?.contains("session has expired") == true && rig.text("pending-votes") == "1")
    rig.answer = nil
    rig.run("login", ToyRig.ada)
    #expect(rig.status == "ready" && rig.text("pending-votes") == "0")
  }

  @Test func `another login of the same user keeps a vote in flight`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.answer = { $0.method == "PUT" ? nil : .answered(status: 200, type: nil, body: Array(#"{"id":18}"#.utf8)) }
    let vote = rig.vote(1, "up")
    let request = try #require(rig.requests.last)
    rig.run("login", ToyRig.ada)
    #expect(rig.results[vote] == nil, "the vote is in flight")
    rig.answer = nil
    rig.give(.response(2, .answered(status: 204, type: nil, body: [])))
    #expect(request.method == "PUT" && rig.report(vote)?.text == "fact 1: already voted that way")
  }

  @Test func `the history contains pending votes`() throws {
    var rig = try ToyRig.loggedIn(facts: 2)
    rig.run("history")
    rig.isOffline = true
    rig.vote(2, "up")
    #expect(rig.report(rig.run("history"))?.rows.map { $0[4] } == ["none", "up"])
  }

  @Test func `a vote that cannot be stored is not sent`() throws {
    var rig = try ToyRig.loggedIn(facts: 1)
    rig.diskWorks = false
    let before = rig.requests.count
    #expect(rig.code(rig.vote(1, "up")) == "not-stored" && rig.requests.count == before && rig.text("pending-votes") == "0")
  }

  @Test func `a logout that cannot be stored is reported`() throws {
    var rig = try ToyRig.loggedIn()
    rig.diskWorks = false
    let id = rig.run("logout")
    #expect(rig.code(id) == "not-stored" && rig.refusal(id) == "logged out, but not stored, so lost when the daemon restarts: no space")
  }
}
