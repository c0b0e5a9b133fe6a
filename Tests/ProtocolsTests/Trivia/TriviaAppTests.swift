import Testing

@testable import Peers
@testable import Protocols

/// Requests of apps, answered as by the original.
@Suite struct TriviaAppTests {
  @Test func `registration creates an account with the toy's 499 facts`() throws {
    let rig = TriviaRig()
    let answer = try rig.register()
    #expect(answer.status == 201 && answer.writes == 1 && answer.fields["connection"] == "close")
    #expect(answer.fields["location"] == "http://triviotoy.azurewebsites.net/User/Register?id=18")
    #expect(answer.fields["content-type"] == "application/json; charset=utf-8")
    #expect(answer.body == #"{"id":18,"name":"Ada","email":"ada@example.org","triviaCount":499}"#)
    let nameless = try rig.ask("POST", "/User/Register", #"{"EMAIL":"b@example.org","Password":"x"}"#)
    #expect(nameless.status == 201 && nameless.body == #"{"id":19,"name":null,"email":"b@example.org","triviaCount":499}"#)
  }

  @Test func `every invalid registration gets the same error`() throws {
    let rig = TriviaRig()
    try rig.register()
    let long = "a23456789012345678901234567890123456789@example.org"
    #expect(long.utf8.count == 51)
    let wrong = [
      "ada@example.org", "ADA@Example.org", "", "ada", "ada@example", "ada@1example.org", "ada@example.1rg", "a..b@example.org",
      ".a@example.org", "a.@example.org", "ada@example-.org", "ada@ex--ample.org", "ada@-example.org", "ada@.org", "ada@example.",
      "a b@example.org", "a@b@example.org", "ädä@example.org", "@example.org", long,
    ]
    for email in wrong {
      let answer = try rig.register(email)
      #expect(answer.status == 400 && answer.body == #"{"message":"Account with email \#(email) already exists or invalid email"}"#)
    }
    for email in [String(long.dropFirst()), "a.b+c@x-1.example.org", "a@b.c"] {
      #expect(try rig.register(email).status == 201, "\(email)")
    }
    let empty = try rig.register("c@example.org", password: "")
    #expect(empty.status == 400 && empty.body.contains("c@example.org already exists or invalid email"))
    let missing = try rig.ask("POST", "/User/Register", #"{"name":"x"}"#)
    #expect(missing.body == #"{"message":"Account with email  already exists or invalid email"}"#)
  }

  @Test func `a login returns the account, and a failed login an empty 404`() throws {
    let rig = TriviaRig()
    try rig.register()
    for _ in 0..<3 { _ = try rig.ask("GET", "/Trivia/18") }
    let known = try rig.ask("POST", "/User/Login", #"{"email":"Ada@example.org","password":"secret1"}"#)
    #expect(known.status == 200 && known.body == #"{"id":18,"name":"Ada","email":"ada@example.org","triviaCount":502}"#)
    for body in [
      #"{"email":"ada@example.org","password":"Secret1"}"#, #"{"email":"bob@example.org","password":"secret1"}"#,
      #"{"email":"ada@example.org"}"#, #"{"email":"ada@example.org","password":""}"#, "{}",
    ] {
      let answer = try rig.ask("POST", "/User/Login", body)
      #expect(answer.status == 404 && answer.body == "" && answer.fields["content-length"] == "0", "\(body)")
      #expect(answer.fields["content-type"] == nil)
    }
  }

  @Test func `the history has the facts that the toy reported as played`() throws {
    let rig = TriviaRig()
    try rig.register()
    #expect(try rig.history() == #"{"triviaHistory":[]}"#)
    let report = try rig.ask("GET", "/User/History/18/2")
    #expect(report.status == 200 && report.body == "" && report.fields["content-length"] == "0")
    let first = #"{"trivia":{"id":1,"text":"Honey never spoils.","upvotes":0,"downvotes":0},"userVote":0}"#
    #expect(try rig.history().hasPrefix(#"{"triviaHistory":[\#(first),{"trivia":{"id":2,"#))
    let unknown = try rig.ask("GET", "/User/History/17")
    #expect(unknown.status == 400 && unknown.body == #"{"message":"Invalid UserId"}"#)
    #expect(try rig.ask("GET", "/User/History/17/1").body == #"{"message":"Invalid UserId"}"#)
    for count in ["0", "-1"] { #expect(try rig.ask("GET", "/User/History/18/\(count)").status == 400) }
    #expect(rig.store.user(18)?.heard == 2)
  }

  @Test func `only downloaded facts can be reported as played`() throws {
    let rig = TriviaRig()
    try rig.register()
    #expect(try rig.ask("GET", "/User/History/18/2147483647").status == 200)
    #expect(rig.store.user(18)?.heard == 499 && rig.store.user(18)?.downloaded == 499)
    #expect(try !rig.history().contains(#""id":500"#))
    _ = try rig.ask("GET", "/Trivia/18")
    #expect(try !rig.history().contains(#""id":500"#))
    #expect(try rig.ask("GET", "/User/History/18/5").status == 200)
    #expect(rig.store.user(18)?.heard == 500)
    #expect(try rig.history().contains(#"{"id":500,"text":"Some turtles"#))
  }

  @Test func `votes change both counters, which include the votes of others`() throws {
    let rig = TriviaRig()
    for name in ["ada", "bob", "eve"] { try rig.register("\(name)@example.org") }
    for user in 18...20 { _ = try rig.ask("GET", "/User/History/\(user)/3") }
    #expect(try rig.vote(1, on: 1, by: 19).status == 200)
    #expect(try rig.vote(1, on: 1, by: 20).status == 200)
    func counts(_ answer: TriviaRig.Answer) -> String? { answer.body.split(separator: #""upvotes":"#).last.map(String.init) }
    let up = try rig.vote(1, on: 1)
    #expect(up.body == #"{"trivia":{"id":1,"text":"Honey never spoils.","upvotes":3,"downvotes":0},"userVote":1}"#)
    let again = try rig.vote(1, on: 1)
    #expect(again.status == 204 && again.body == "" && again.fields["content-length"] == nil && again.fields["content-type"] == nil)
    #expect(try counts(rig.vote(-1, on: 1)) == #"2,"downvotes":1},"userVote":-1}"#)
    #expect(try counts(rig.vote(1, on: 1)) == #"3,"downvotes":0},"userVote":1}"#)
    #expect(try counts(rig.vote(0, on: 1)) == #"2,"downvotes":0},"userVote":0}"#)
    #expect(try rig.vote(0, on: 1).status == 204 && rig.vote(0, on: 2).status == 204)
    #expect(try counts(rig.vote(-1, on: 2)) == #"0,"downvotes":1},"userVote":-1}"#)
    #expect(try rig.history(19).contains(#""upvotes":2,"downvotes":0},"userVote":1}"#))
  }

  @Test func `an invalid vote is rejected`() throws {
    let rig = TriviaRig()
    try rig.register()
    _ = try rig.ask("GET", "/User/History/18/30")
    // Not played yet, not downloaded, not a fact, of an unknown user, in a gap between the facts.
    for (fact, user) in [(31, 18), (500, 18), (0, 18), (-1, 18), (1, 17), (30, 18)] {
      let answer = try rig.vote(1, on: fact, by: user)
      #expect(answer.status == 400 && answer.body == #"{"message":"User has not heard trivia yet or invalid user id/trivia id "}"#)
    }
    let mismatch = try rig.ask("PUT", "/Trivia/Vote/1", #"{"userVote":1,"userId":18,"triviaId":2}"#)
    #expect(mismatch.status == 400 && mismatch.body == "" && mismatch.fields["content-length"] == "0")
    for value in ["2", "-2", "99", "null", "1.5", #""up""#, "true"] {
      let answer = try rig.ask("PUT", "/Trivia/Vote/1", #"{"userVote":\#(value),"userId":18,"triviaId":1}"#)
      #expect(answer.status == 400 && answer.body.hasPrefix(#"{"message":""#), "\(value)")
    }
    #expect(rig.store.entries(1...1, of: 18).first?.vote == 0)
    let loose = try rig.ask("PUT", "/trivia/vote/1", #"{"TRIVIAID":"1","UserVote":1.0,"userid":18,"more":[{}]}"#)
    #expect(loose.status == 200)
  }

  @Test func `invalid requests get the original's responses`() throws {
    let rig = TriviaRig()
    try rig.register()
    for (method, path) in [("POST", "/User/Register"), ("POST", "/User/Login"), ("PUT", "/Trivia/Vote/1")] {
      for body in [nil, "", "null"] {
        let missing = try rig.ask(method, path, body)
        #expect(missing.status == 500 && missing.body == #"{"message":"An error has occurred."}"#)
      }
      for body in ["{", "[]", "7", "{\"email\":1,\"userId\":[]}", "{\"name\":{},\"triviaId\":\"x\"}"] {
        let wrong = try rig.ask(method, path, body)
        let isNoMatter = path == "/User/Login" && body.contains("name")
        #expect(isNoMatter || wrong.status == 400 && wrong.body.contains(#""modelState":{""#), "\(path) \(body) \(wrong.body)")
      }
    }
    for path in ["/User/History/x", "/User/History/99999999999", "/User/History/18/x", "/User/History/x/1", "/Trivia/x", "/Trivia/1.0"] {
      let answer = try rig.ask("GET", path)
      #expect(answer.status == 400 && answer.body.contains(#""message":"The request is invalid.","messageDetail":""#), "\(path)")
    }
    #expect(try rig.ask("PUT", "/Trivia/Vote/x", "{}").body.contains("messageDetail"))
    for path in ["/User", "/User/", "/", "/User/18", "/User/Register/1", "/Trivia", "/Trivia/18/1/2", "/robots.txt"] {
      #expect(try rig.ask("GET", path).status == 404, "\(path)")
    }
    let method = try rig.ask("GET", "/User/Login")
    #expect(method.status == 405 && method.fields["allow"] == "POST")
    #expect(try rig.ask("POST", "/Trivia/18", "{}").status == 405)
    #expect(rig.store.user(18)?.downloaded == 499, "none of these requests is a download")
  }
}
