// `vehiclesim trivia` over sockets, with a database on disk. Its responses are tested in virtual time; these tests cover files,
// sockets and restarts.

import CLinux
import Foundation
import Glibc
import Testing

extension EndToEnd {
  @Suite("The trivia server") struct TriviaServerTests {
    private static let register = #"{"name":"Ada","email":"ada@example.org","password":"hunter22"}"#
    private static let login = #"{"email":"ada@example.org","password":"hunter22"}"#
    private static let fetch = "GET /Trivia/1  HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"

    private func server(_ rig: Rig, _ arguments: String...) throws -> (Program, port: UInt16) {
      let program = try rig.start("vehiclesim", ["trivia", "--on", "tcp:127.0.0.1:0", "-v"] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the server prints nothing: \(program.stderr)")
      let url = program.stdout.split(separator: "\n").first ?? ""
      #expect(url.hasPrefix("http://127.0.0.1:"))
      return (program, try #require(url.split(separator: ":").last.flatMap { UInt16($0) }))
    }

    /// Sends a text in pieces and returns the reply until the server closes the connection, or nil if it resets the connection.
    private func exchange(_ port: UInt16, _ text: String, pieces: Int = .max) throws -> String? {
      let file = try connection(to: port, seconds: 20)
      defer { close(file) }
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let count = rest.prefix(pieces).withUnsafeBytes { Glibc.send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        try #require(count > 0)
        rest = rest.dropFirst(count)
        if pieces < .max { usleep(1000) }
      }
      var (received, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 65536))
      while true {
        let count = recv(file, &buffer, buffer.count, 0)
        if count == 0 { return String(decoding: received, as: UTF8.self) }
        if count < 0 { return nil }
        received += buffer[..<count]
      }
    }

    private func ask(_ port: UInt16, _ method: String, _ path: String, _ body: String = "", token: String? = nil) throws -> String {
      let bearer = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
      let head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(bearer)Content-Length: \(body.utf8.count)\r\n\r\n"
      return try #require(try exchange(port, head + body))
    }

    @Test func `a server on all addresses prints those of the machine`() throws {
      let rig = try Rig()
      let program = try rig.start("vehiclesim", ["trivia", "--on", "tcp:0.0.0.0:0"])
      try #require(wait { program.stdout.contains("\n") }, "the server prints nothing: \(program.stderr)")
      let urls = (program.stdout.split(separator: "\n").first ?? "").split(separator: " ")
      #expect(!urls.isEmpty && urls.allSatisfy { $0.hasPrefix("http://") && !$0.contains("//0.0.0.0") && !$0.hasSuffix(":0") }, "\(urls)")
    }

    @Test func `its help names the configuration key`() throws {
      let help = try Rig().run("\(Rig.programs)/vehiclesim", ["trivia", "--help"]).output
      #expect(help.contains("the URL to configure as `server = \"…\"`") && !help.contains("for url of"), "\(help)")
    }

    @Test func `accounts, votes and tokens survive a restart, and secrets are not stored in plain text`() throws {
      let rig = try Rig()
      let path = "\(rig.directory)/trivia.db"
      let (first, port) = try server(rig, "--database", path, "--tokens")
      let registered = try ask(port, "POST", "/User/Register", Self.register)
      #expect(registered.hasPrefix("HTTP/1.1 201 Created\r\n") && registered.contains(#""triviaCount":499,"token":""#), "\(registered)")
      let token = String(registered.split(separator: #""token":""#).last?.prefix(32) ?? "")
      #expect(token.utf8.count == 32)
      let toy = try #require(try exchange(port, Self.fetch, pieces: 7))
      #expect(toy.hasPrefix("HTTP/1.1 200 OK") && toy.utf8.count <= 1024 && toy.hasSuffix("under ice.\""))
      #expect(try ask(port, "GET", "/User/History/1/2").hasPrefix("HTTP/1.1 200 OK"))
      #expect(try ask(port, "GET", "/User/History/1").hasPrefix("HTTP/1.1 401 "))
      let vote = #"{"userVote":-1,"userId":1,"triviaId":2}"#
      #expect(try ask(port, "PUT", "/Trivia/Vote/2", vote, token: token).contains(#""downvotes":1},"userVote":-1}"#))

      // A second server does not open the database.
      let second = rig.run("\(Rig.programs)/vehiclesim", ["trivia", "--on", "tcp:127.0.0.1:0", "--database", path])
      #expect(second.status == 1 && second.errors.contains("\(path) is locked by another program"), "\(second.errors)")

      let seen = first.stderr
      #expect(seen.contains("POST /User/Register") && seen.contains("bytes redacted"))
      first.end(SIGKILL)
      for name in try FileManager.default.contentsOfDirectory(atPath: rig.directory) where name.hasPrefix("trivia.db") {
        let file = "\(rig.directory)/\(name)"
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600, "\(name)")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        for secret in ["hunter22", token] { #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(name)") }
      }
      for secret in ["hunter22", token] { #expect(!seen.contains(secret)) }

      let (_, next) = try server(rig, "--database", path, "--tokens")
      let known = try ask(next, "POST", "/User/Login", Self.login)
      #expect(known.hasPrefix("HTTP/1.1 200 OK") && known.contains(#"{"id":1,"name":"Ada","email":"ada@example.org","triviaCount":500,"#))
      let wrong = try ask(next, "POST", "/User/Login", Self.login.replacingOccurrences(of: "22", with: "23"))
      #expect(wrong.hasPrefix("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n"))
      let history = try ask(next, "GET", "/User/History/1", token: token)
      #expect(history.contains(#""upvotes":0,"downvotes":1},"userVote":-1}]}"#), "\(history)")
      #expect(try ask(next, "PUT", "/Trivia/Vote/2", vote, token: token).hasPrefix("HTTP/1.1 204 No Content\r\n"))
      #expect(try ask(next, "POST", "/User/Register", Self.register).hasPrefix("HTTP/1.1 400 "))
    }

    @Test func `a history of several MiB is delivered completely`() throws {
      let rig = try Rig()
      let (path, facts, most) = ("\(rig.directory)/trivia.db", "\(rig.directory)/facts.txt", 20_000)
      // A toy has fetched the last of many facts, and has played all up to it.
      let text = String(repeating: "Honey never spoils. ", count: 5)
      try "\(most)\t\(text)\n".write(toFile: facts, atomically: true, encoding: .utf8)
      let (first, port) = try server(rig, "--database", path, "--facts", facts)
      #expect(try ask(port, "POST", "/User/Register", Self.register).hasPrefix("HTTP/1.1 201 "))
      #expect(try exchange(port, Self.fetch)?.hasPrefix("HTTP/1.1 200 OK") == true)
      #expect(try ask(port, "GET", "/User/History/1/\(most)").hasPrefix("HTTP/1.1 200 OK"))
      first.end()
      try (500...most).map { "\($0)\t\(text)\n" }.joined().write(toFile: facts, atomically: true, encoding: .utf8)
      let (_, next) = try server(rig, "--database", path, "--facts", facts)
      #expect(try ask(next, "GET", "/User/History/1").utf8.count > 3 << 20)

      try rig.write("[device.toy]\nkind = \"toy\"\nserver = \"http://127.0.0.1:\(next)\"\ninsecure-http = true\nproxy = \"\"\n")
      let daemon = try rig.daemon()
      func toy(_ arguments: String..., input: String? = nil) -> Outcome {
        rig.run("\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "toy"] + arguments, input: input)
      }
      #expect(toy("login", "ada@example.org", input: "hunter22\n").status == 0)
      // More than a pipe holds.
      let output = "\(rig.directory)/history.txt"
      let history = rig.run(
        "/bin/sh", ["-c", "exec \"$0\" --socket \"$1\" toy history > \"$2\"", "\(Rig.programs)/vehiclectl", rig.socket, output])
      let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
      let ids = lines.dropFirst().compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }
      #expect(history.status == 0 && ids.suffix(most - 499) == Array(500...most)[...], "\(ids.count) \(history.errors)")
      #expect(toy("fact", "\(most)").status == 0 && rig.get("toy.facts") == String(ids.count))
      #expect(daemon.end() == 0)
    }

    @Test func `a client that sends more than is read still gets a response`() throws {
      let rig = try Rig()
      let (program, port) = try server(rig)
      #expect(try ask(port, "POST", "/User/Register", Self.register).hasPrefix("HTTP/1.1 201 "))
      for rest in [Self.fetch, String(repeating: "x", count: 20_000)] {
        #expect(try exchange(port, Self.fetch + rest)?.hasPrefix("HTTP/1.1 200 OK") == true)
      }
      #expect(try exchange(port, "GET /User/\u{1B}[2J HTTP/1.1\r\n\r\n")?.hasPrefix("HTTP/1.1 404 ") == true)
      #expect(wait { program.stderr.contains("GET /User/[2J") } && !program.stderr.contains("\u{1B}"))
      #expect(program.end() == 0)
    }

    @Test func `a file that is not its own database is not modified`() throws {
      let rig = try Rig()
      let path = "\(rig.directory)/trivia.db"
      let (program, port) = try server(rig, "--database", path)
      #expect(try ask(port, "POST", "/User/Register", Self.register).hasPrefix("HTTP/1.1 201 "))
      #expect(program.end() == 0)
      let good = try Data(contentsOf: URL(fileURLWithPath: path))
      try #require(good.count > 8192)

      func complaint(_ bytes: Data) throws -> String {
        try bytes.write(to: URL(fileURLWithPath: path))
        let outcome = rig.run("\(Rig.programs)/vehiclesim", ["trivia", "--on", "tcp:127.0.0.1:0", "--database", path])
        #expect(outcome.status == 1 && outcome.output == "")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes, "it was written to")
        return outcome.errors
      }
      #expect(try complaint(Data("Dear diary, today I saw a bee.\n".utf8)).contains("\(path) is not a SQLite database"))
      var foreign = good
      foreign[68] ^= 1  // the application's id
      #expect(try complaint(foreign).contains("\(path) was created by a different program"))
      var later = good
      later[63] ^= 6  // the version of the schema
      #expect(try complaint(later).contains("\(path) was created by a different version of vehiclesim"))
      var damaged = good
      for place in 4096..<(damaged.count - 1) { damaged[place] = 0xFF }
      #expect(try complaint(damaged).contains("\(path) is corrupt"))
      #expect(try complaint(good.prefix(good.count / 2)).contains("\(path) is corrupt"))
      let nowhere = rig.run("\(Rig.programs)/vehiclesim", ["trivia", "--on", "tcp:127.0.0.1:0", "--database", "/nowhere/at/all"])
      #expect(nowhere.status == 1 && nowhere.errors.contains("cannot open /nowhere/at/all: No such file"))
    }

    @Test func `toys fetch the facts of a given file`() throws {
      let rig = try Rig()
      let (facts, path) = ("\(rig.directory)/facts.txt", "\(rig.directory)/trivia.db")
      try rig.write("“Bees” can count to four.\n1\tThe first of my own.\n", to: facts)
      let (program, port) = try server(rig, "--facts", facts, "--database", path)
      #expect(try ask(port, "POST", "/User/Register", Self.register).hasPrefix("HTTP/1.1 201 "))
      #expect(try exchange(port, Self.fetch)?.hasSuffix("\r\n\r\n\"'Bees' can count to four.\"") == true)
      #expect(try exchange(port, Self.fetch)?.hasPrefix("HTTP/1.1 404 ") == true)
      #expect(program.end() == 0)
      // The database keeps them.
      let (_, next) = try server(rig, "--database", path)
      #expect(try ask(next, "GET", "/User/History/1/2").hasPrefix("HTTP/1.1 200 "))
      #expect(try ask(next, "GET", "/User/History/1").contains(#"{"id":1,"text":"The first of my own.""#))

      try rig.write("fine\nC:\\bad\n", to: facts)
      let wrong = rig.run("\(Rig.programs)/vehiclesim", ["trivia", "--on", "tcp:127.0.0.1:0", "--facts", facts])
      #expect(wrong.status == 1 && wrong.errors.contains("cannot use \(facts): line 2 has a backslash"), "\(wrong.errors)")
      let missing = rig.run("\(Rig.programs)/vehiclesim", ["trivia", "--on", "tcp:127.0.0.1:0", "--facts", "/nowhere"])
      #expect(missing.status == 1 && missing.errors.contains("cannot read /nowhere: No such file"))
    }
  }
}
