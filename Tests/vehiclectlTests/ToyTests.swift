// The toy commands: selection of the toy, calls, output, and that passwords are never shown.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ToyTests {
  static let columns = ["id", "fact", "up", "down", "vote", "pending"]
  let honey = Report(
    columns: columns,
    rows: [["1", "Honey never spoils.", "2", "0", "up", ""], ["12", "Octopuses have three hearts.", "0", "1", "none", ""]])

  func failure(_ body: () throws -> Void) -> Failure? {
    do { try body() } catch { return error as? Failure }
    return nil
  }

  @Test func `the only toy is selected, or the named one`() throws {
    func device(_ name: String, _ kind: String) -> Contract.Device { .init(name: name, kind: kind, state: "ready") }
    let one = [device("ev", "obd"), device("ball", "toy")]
    #expect(try Toy.choose(nil, among: one) == "ball")
    let two = one + [device("toy", "toy")]
    #expect(try Toy.choose("toy", among: two) == "toy")
    let several = failure { _ = try Toy.choose(nil, among: two) }
    #expect(several?.exitCode == 2 && several?.message == "more than one toy is configured: ball, toy; select one with --device NAME")
    let none = failure { _ = try Toy.choose(nil, among: [one[0]]) }
    #expect(none?.exitCode == 4 && none?.message.hasSuffix("\n    [device.toy]\n    kind = \"toy\"") == true)
    #expect(failure { _ = try Toy.choose("ev", among: one) }?.exitCode == 2)
  }

  @Test func `facts are a table that fits, wrapped between words`() {
    let facts = Fact.all(Contract.Call.Result(honey))
    #expect(facts.map(\.id) == [1, 12])
    #expect(
      Fact.lines(facts, width: 39) { text, _ in text }
        == [
          "id  fact                 up  down  vote", " 1  Honey never spoils.   2     0  up", "12  Octopuses have        0     1",
          "    three hearts.",
        ])
    #expect(
      Fact.lines(facts, width: nil) { text, _ in text }.last == "12  Octopuses have three hearts.   0     1")
    let rude = Fact(id: nil, text: "a\u{1b}[2Jb", up: nil, down: nil, vote: "none")
    #expect(Fact.lines([rude], width: 40) { text, _ in text } == ["fact", "a [2Jb"])
  }

  @Test func `texts wrap without losing characters`() {
    #expect("one two three".wrapped(to: 7) == ["one two", "three"])
    #expect("".wrapped(to: 7) == [""] && " ".wrapped(to: 3) == [""])
    #expect("abcdefgh ij".wrapped(to: 3) == ["abc", "def", "gh", "ij"])
    #expect("漢字漢字 x".wrapped(to: 5) == ["漢字", "漢字", "x"])
    #expect("漢".wrapped(to: 0) == ["漢"])
  }

  @Test func `facts are typed in JSON`() throws {
    let report = honey
    let daemon = ToyDaemon { called, _ in
      var report = report
      report.text = "as of 12 min ago: no route to the server"
      if called.action == "fact" { report.rows = [report.rows[0]] }
      return ToyDaemon.done(report)
    }
    let server = try daemon.serve()
    defer { server.stop() }
    let history = try Program.run(["toy", "history", "--json", "--socket", server.path])
    #expect(
      history.stdout
        == #"{"facts":[{"id":1,"text":"Honey never spoils.","up":2,"down":0,"vote":"up","pending":false},{"id":12,"text":"Octopuses have three hearts.","#
        + #""up":0,"down":1,"vote":"none","pending":false}],"note":"as of 12 min ago: no route to the server"}"# + "\n")
    let fact = try Program.run(["toy", "fact", "1", "--json", "--socket", server.path])
    #expect(
      fact.stdout
        == #"{"id":1,"text":"Honey never spoils.","up":2,"down":0,"vote":"up","pending":false,"note":"as of 12 min ago: no route to the server"}"#
        + "\n")
    #expect(daemon.called.last?.arguments.text == #"{"id":{"int":1}}"#)
    let plain = try Program.run(["toy", "history", "--socket", server.path])
    #expect(plain.stdout.hasPrefix("id  fact") && plain.stderr == "as of 12 min ago: no route to the server\n")
  }

  @Test func `a pending vote is marked in JSON and in the table`() throws {
    let daemon = ToyDaemon { called, _ in
      called.action == "vote"
        ? ToyDaemon.done(Report(text: "kept", columns: ["fact", "vote", "state"], rows: [["7", "up", "waiting"]]))
        : ToyDaemon.done(Report(columns: Self.columns, rows: [["7", "Honey.", "0", "0", "up", "yes"]]))
    }
    let server = try daemon.serve()
    defer { server.stop() }
    let vote = try Program.run(["toy", "vote", "7", "up", "--json", "--socket", server.path])
    #expect(vote.stdout.hasSuffix(#""text":"kept","fact":7,"vote":"up","state":"waiting"}"# + "\n"), "\(vote)")
    let history = try Program.run(["toy", "history", "--json", "--socket", server.path])
    #expect(history.stdout == #"{"facts":[{"id":7,"text":"Honey.","up":0,"down":0,"vote":"up","pending":true}]}"# + "\n", "\(history)")
    #expect(try Program.run(["toy", "history", "--socket", server.path]).stdout.contains("up (pending)"))
    // An older daemon has no column pending, and an empty cell for no vote.
    let old = Fact.all(Contract.Call.Result(Report(columns: ["id", "fact", "vote"], rows: [["1", "x", ""]])))
    #expect(old.map(\.vote) == ["none"] && old.map(\.isPending) == [false])
  }

  @Test func `the account has typed members, and one line per member`() {
    let result = Contract.Call.Result(
      Report(columns: ["id", "name", "email", "facts"], rows: [["18", "42", "ada@example.org", "499"]]))
    #expect(ToyWhoamiCommand.json(result).text == #"{"id":18,"name":"42","email":"ada@example.org","facts":499}"#)
    #expect(
      ToyWhoamiCommand.lines(result) { text, _ in text } == ["id     18", "name   42", "email  ada@example.org", "facts  499"])
  }

  @Test func `each command calls its action, with the password from stdin`() throws {
    let daemon = ToyDaemon()
    let server = try daemon.serve()
    defer { server.stop() }
    let tail = ["--socket", server.path]
    let commands: [([String], String)] = [
      (
        ["register", "Ada Lovelace", "ada@example.org"],
        #"{"email":{"string":"ada@example.org"},"name":{"string":"Ada Lovelace"},"password":{"string":"geheim 1"}}"#
      ),
      (["login", "ada@example.org"], #"{"email":{"string":"ada@example.org"},"password":{"string":"geheim 1"}}"#),
      (["logout"], "{}"), (["logout", "--delete-votes"], #"{"delete-votes":{"bool":true}}"#),
      (["votes", "--delete", "held"], #"{"delete":{"string":"held"}}"#),
      (["vote", "7", "none"], #"{"id":{"int":7},"vote":{"string":"none"}}"#),
      (["vote", "7", "clear"], #"{"id":{"int":7},"vote":{"string":"none"}}"#),
    ]
    for (words, arguments) in commands {
      let outcome = try Program.run(["toy"] + words + tail, input: "geheim 1\nanother line\n")
      #expect(outcome.status == 0 && outcome.stdout == "done\n" && outcome.stderr.isEmpty, "\(words): \(outcome)")
      let called = try #require(daemon.called.last)
      #expect(called.device == "toy" && called.action == words[0])
      #expect(sorted(called.arguments).text == arguments)
    }
    for (words, name) in [(["logout", "--drop-votes"], "--delete-votes"), (["votes", "--forget", "all"], "--delete")] {
      let outcome = try Program.run(["toy"] + words + tail)
      #expect(outcome.status == 2 && outcome.stderr.contains("was renamed; use \(name)"), "\(outcome)")
    }
    let json = try Program.run(["toy", "login", "a@b.c", "--json"] + tail, input: "geheim 1")
    #expect(json.stdout == #"{"device":"toy","text":"done"}"# + "\n")
    #expect(try Program.run(["toy", "login", "a@b.c", "-q"] + tail, input: "geheim 1\n").stdout.isEmpty)
  }

  /// The members in the order of their names.
  private func sorted(_ json: JSON) -> JSON {
    guard case .object(let members) = json else { return json }
    return .object(members.sorted { $0.key < $1.key })
  }

  @Test func `a password as an argument is rejected and not repeated`() throws {
    let daemon = ToyDaemon()
    let server = try daemon.serve()
    defer { server.stop() }
    for words in [
      ["login", "a@b.c", "geheim"], ["login", "a@b.c", "--password", "geheim"], ["login", "a@b.c", "--password=geheim"],
      ["register", "Ada", "a@b.c", "geheim"],
    ] {
      let outcome = try Program.run(["toy"] + words + ["--socket", server.path], input: "x\n")
      #expect(outcome.status == 2 && outcome.stderr.contains("a password cannot be an argument"), "\(words): \(outcome)")
      #expect(!(outcome.stderr + outcome.stdout).contains("geheim"))
    }
    let typo = try Program.run(["toy", "login", "a@b.c", "--jsn", "--socket", server.path], input: "x\n")
    #expect(typo.status == 2 && typo.stderr.contains("unknown option \"--jsn\""))
    let nothing = try Program.run(["toy", "login", "a@b.c", "--socket", server.path])
    #expect(nothing.status == 2 && nothing.stderr.contains("no password"))
    #expect(daemon.called.isEmpty)
  }

  @Test func `verbose output contains no secrets`() throws {
    let login = Action(
      "login",
      arguments: [Protocols.Argument("email", .string, help: ""), Protocols.Argument("code", .string, secret: true, help: "")], help: "")
    let daemon = ToyDaemon(actions: [login])
    let server = try daemon.serve()
    defer { server.stop() }
    for words in [["toy", "login", "a@b.c"], ["do", "login", "a@b.c"]] {
      let outcome = try Program.run(words + ["-v", "--socket", server.path], input: "geheim\n")
      #expect(outcome.status == 0 && outcome.stderr.contains("io.vehicled.Call") && outcome.stderr.contains("a@b.c"), "\(outcome)")
      #expect(outcome.stderr.contains(#"{"string":"…"}"#) || outcome.stderr.contains(#":"…""#))
      #expect(!outcome.stderr.contains("geheim"))
    }
    #expect(daemon.called.compactMap { ($0.arguments["password"] ?? $0.arguments["code"])?["string"]?.string } == ["geheim", "geheim"])
    #expect(String(decoding: Trace.redacted(Array("geheim".utf8), hiding: ["code"]), as: UTF8.self) == "a message of 6 bytes")
  }

  @Test func `the daemon's errors keep their messages and exit codes`() throws {
    let daemon = ToyDaemon { called, _ in
      called.action == "whoami"
        ? ToyDaemon.refused("needs-login", "not logged in: vehiclectl toy login EMAIL")
        : .send(VarlinkReply.message(.timeout(device: "toy", milliseconds: 10_000)))
    }
    let server = try daemon.serve()
    defer { server.stop() }
    let refused = try Program.run(["toy", "whoami", "--socket", server.path])
    #expect(refused.status == 1 && refused.stderr == "vehiclectl: toy: not logged in: vehiclectl toy login EMAIL (needs-login)\n")
    #expect(try Program.run(["toy", "history", "--socket", server.path]).status == 6)
    #expect(try Program.run(["toy", "history", "--device", "x", "--socket", server.path]).status == 4)
    #expect(try Program.run(["toy", "history", "--socket", "/nonexistent/s"]).status == 3)
  }

  @Test func `toy has subcommands, without one it is the toy's status`() throws {
    #expect(try VehicleCtl.command(of: ["toy"]) is ToyCommand)
    let history = try VehicleCtl.command(of: ["toy", "--device", "ball", "--json", "history"]) as? ToyHistoryCommand
    #expect(history?.toy.device == "ball" && history?.common.json == true)
    let vote = try VehicleCtl.command(of: ["--json", "toy", "vote", "3", "down"]) as? ToyVoteCommand
    #expect(vote?.id == 3 && vote?.vote == .down)
    for wrong in [["vote", "3"], ["vote", "3", "sideways"], ["vote", "x", "up"], ["fact"], ["fact", "0"], ["wash"], ["login"]] {
      #expect(throws: (any Error).self) { _ = try VehicleCtl.command(of: ["toy"] + wrong) }
    }
    let server = try ToyDaemon(devices: [("ev", "obd"), ("ball", "toy")]).serve()
    defer { server.stop() }
    #expect(try Program.run(["toy", "--socket", server.path]).stdout == "ball (toy): ready\n")
    let namesake = try ToyDaemon(devices: [("toy", "weather"), ("ball", "toy")]).serve()
    defer { namesake.stop() }
    #expect(try Program.run(["toy", "--socket", namesake.path]).stdout == "toy (weather): ready\n")
  }

  @Test func `a new password is typed twice without echo until both match`() throws {
    let daemon = ToyDaemon()
    let server = try daemon.serve()
    defer { server.stop() }
    let pty = try PTY()
    let pid = try Program.start(["toy", "register", "Ada", "a@b.c", "--socket", server.path], on: pty)
    var talk = Conversation(pty)
    talk.when("password: ", type: "geheim 1\n")
    talk.when("repeat password: ", type: "geheim 2\n")
    talk.when("do not match", type: "")
    talk.when("password: ", type: "geheim 3\n")
    talk.when("repeat password: ", type: "geheim 3\n")
    #expect(talk.end(of: pid) == 0, "\(talk.shown)")
    #expect(talk.shown.hasSuffix("done\r\n") && !talk.shown.contains("geheim"))
    #expect(daemon.called.first?.arguments["password"]?["string"]?.string == "geheim 3")
  }

  @Test func `Ctrl-C at a prompt restores the echo`() throws {
    let daemon = ToyDaemon()
    let server = try daemon.serve()
    defer { server.stop() }
    let pty = try PTY()
    let pid = try Program.start(["toy", "login", "a@b.c", "--socket", server.path], on: pty)
    var talk = Conversation(pty)
    talk.when("password: ", type: "ge\u{3}")
    #expect(talk.end(of: pid) == 1 && talk.shown.hasSuffix("vehiclectl: interrupted\r\n"), "\(talk.shown)")
    #expect(pty.echoes && daemon.called.isEmpty)
  }
}
