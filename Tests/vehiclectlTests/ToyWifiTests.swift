// toy wifi: prompts and validation before the button is pressed, the call, and the computer's network meanwhile.

import CLinux
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ToyWifiTests {
  @Test(arguments: [
    ("Home", true), ("", false), (String(repeating: "ä", count: 16), true), (String(repeating: "ä", count: 16) + "b", false),
    ("a:b", false),
    ("a\"b", false), ("a\\b", false), ("a\rb", false), ("a\nb", false), ("a\0b", false), (" a,b ", true),
  ])
  func `network names are validated`(_ name: String, _ isValid: Bool) {
    #expect((ToyWiFi.validationError(forName: name) == nil) == isValid)
  }

  @Test(arguments: [
    ("", true), ("1234567", false), ("12345678", true), (String(repeating: "x", count: 63), true),
    (String(repeating: "x", count: 64), false),
    ("pa:ss word", true), ("pass\"word", false), ("pass\\word", false), ("pass\0word", false), ("ääää", true),
  ])
  func `network passwords are validated`(_ password: String, _ isValid: Bool) {
    #expect((ToyWiFi.validationError(forPassword: password) == nil) == isValid)
  }

  @Test func `a comma causes a warning`() {
    #expect(ToyWiFi.warning("a", "bbbbbbbb") == nil)
    #expect(ToyWiFi.warning("a,b", "b,bbbbbbb")?.hasPrefix("comma in the name and the password") == true)
  }

  @Test func `shell commands are quoted`() {
    #expect(NetworkRestoration.reconnectCommand("it's $(x)") == #"nmcli connection up 'it'\''s $(x)'"#)
  }

  // MARK: Prompts

  /// Returns the answers in order, then nil.
  private final class Script {
    var answers: [String]
    var prompts: [String] = []
    init(_ answers: [String]) { self.answers = answers }
    func next(_ prompt: String) -> String? {
      prompts.append(prompt)
      return answers.isEmpty ? nil : answers.removeFirst()
    }
  }

  private func ask(
    _ given: String?, _ answers: [String], nearby: NearbyNetworks? = nil, isAtTerminal: Bool = true
  ) throws(Failure) -> (credentials: WiFiPrompt.Credentials, prompts: [String]) {
    let script = Script(answers)
    var prompt = WiFiPrompt(output: Output(json: true), isAtTerminal: isAtTerminal)
    prompt.promptForLine = { text throws(Failure) in script.next(text) }
    prompt.promptForSecret = { text throws(Failure) in script.next(text) }
    prompt.scan = { () throws(Failure) in nearby }
    return (try prompt.credentials(given), script.prompts)
  }

  private let nearby = NearbyNetworks([
    AccessPoint(ssid: Array("Home".utf8), frequency: 2412, strength: 70, security: .password),
    AccessPoint(ssid: Array("Café".utf8), frequency: 2437, strength: 60, security: .open),
  ])

  @Test func `invalid input prompts again`() throws {
    let typed = try ask(nil, ["", "a:b", "Home", "short", "long enough"])
    #expect(typed.credentials == .init(name: "Home", password: "long enough"))
    #expect(typed.prompts.map { $0.prefix(8) } == ["network ", "network ", "network ", "password", "password"])
    let chosen = try ask(nil, ["3", "", "1", "", "12345678"], nearby: nearby)
    #expect(chosen.credentials == .init(name: "Home", password: "12345678"), "a network that has a password gets one")
    #expect(chosen.prompts.last == "password for Home: ")
  }

  @Test func `an open network has no password`() throws {
    #expect(try ask(nil, ["2"], nearby: nearby).credentials == .init(name: "Café", password: ""))
    #expect(try ask(nil, ["Café"], nearby: nearby).credentials == .init(name: "Café", password: ""))
    let given = try ask("Else", [""])
    #expect(given.credentials == .init(name: "Else", password: "") && given.prompts == ["password for Else (empty if open): "])
  }

  @Test func `without a terminal invalid input is an error`() throws {
    #expect(try ask("Home", ["12345678"], isAtTerminal: false).credentials.password == "12345678")
    for (given, answers) in [(nil, ["Home", "12345678"]), ("Home", []), ("Home", ["short", "12345678"]), ("a:b", ["12345678"])]
      as [(String?, [String])]
    {
      do {
        _ = try ask(given, answers, isAtTerminal: false)
        Issue.record("\(String(describing: given)) \(answers) was accepted")
      } catch { #expect(error.exitCode == 2 && !error.message.contains("short")) }
    }
  }

  // MARK: The program

  /// A daemon that listens for the toy until the flag is raised.
  private func daemon(
    until flag: Flag, gone: Flag = Flag(), saying words: String = "waiting for the toy",
    then last: Answer = ToyDaemon.done(Report(text: "sent; look at the light", progress: 1))
  )
    -> ToyDaemon
  {
    ToyDaemon { _, connection in
      let own = fcntl(connection, F_DUPFD_CLOEXEC, 0)  // the number of the other may be reused before this ends
      let thread = ServerThread {
        defer { close(own) }
        let report = Report(text: words, progress: 0.1)
        let waiting = VarlinkReply.message(Contract.Call.Result(report), continues: true)
        repeat {
          guard Glibc.send(own, waiting, waiting.count, Int32(MSG_NOSIGNAL)) > 0 else { return gone.raise() }
          usleep(50_000)
        } while !flag.isRaised
        if case .send(let bytes) = last { SocketServer.send(own, bytes) }
      }
      return (try? thread.start()) == nil ? .sendAndClose([]) : .nothing
    }
  }

  private func raised() -> Flag {
    let flag = Flag()
    flag.raise()
    return flag
  }

  @Test func `a script gives the name, writes the password to stdin, and reads plain lines`() throws {
    let daemon = daemon(until: raised())
    let server = try daemon.serve()
    defer { server.stop() }
    let outcome = try Program.run(["toy", "wifi", "Home", "--dial", "192.168.4.1", "-v", "--socket", server.path], input: "pa:ss word\n")
    #expect(outcome.status == 0 && outcome.stdout == "sent; look at the light\n", "\(outcome)")
    #expect(outcome.stderr.contains("1. Press the toy's Wi-Fi button") && !outcome.stderr.contains("pa:ss"))
    #expect(outcome.stderr.contains("check the password for \"Home\"") && !outcome.stderr.contains("\u{1b}"))
    let arguments = try #require(daemon.called.first?.arguments)
    #expect(arguments["ssid"]?["string"]?.string == "Home" && arguments["password"]?["string"]?.string == "pa:ss word")
    #expect(arguments["dial"]?["string"]?.string == "192.168.4.1")
    let open = try Program.run(["toy", "wifi", "Café", "--json", "-q", "--socket", server.path], input: "\n")
    #expect(open.stdout.hasSuffix(#"{"text":"sent; look at the light","progress":1}"# + "\n") && open.stderr.isEmpty)
    #expect(daemon.called.last?.arguments["password"] == nil)
  }

  @Test func `invalid input is rejected before the daemon is called`() throws {
    let daemon = daemon(until: raised())
    let server = try daemon.serve()
    defer { server.stop() }
    for (words, input) in [
      (["Home"], ""), (["Home"], "short\n"), (["a:b"], "12345678\n"), ([], "Home\n"), (["Home", "geheim 12"], "x\n"),
      (["Home", "--join=" + String(repeating: "x", count: 33)], "12345678\n"),
    ] {
      let outcome = try Program.run(["toy", "wifi"] + words + ["--socket", server.path], input: input)
      #expect(outcome.status == 2 && !outcome.stderr.contains("geheim"), "\(words): \(outcome)")
    }
    let alone = try Program.run(["toy", "wifi", "Home", "--join", "--socket", server.path], input: "12345678\n")
    #expect(alone.status == 1 && alone.stderr.contains("NetworkManager is not running"), "\(alone)")
    #expect(daemon.called.isEmpty)
  }

  @Test func `the user selects a network and joins the toy's network by hand`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.locked("Home", strength: 70), .open("Trivio", strength: 90)] }
    let flag = Flag()
    let daemon = daemon(until: flag)
    let server = try daemon.serve()
    defer { server.stop() }
    let pty = try PTY()
    let pid = try Program.start(
      ["toy", "wifi", "--socket", server.path], on: pty, environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
    var talk = Conversation(pty)
    talk.when("1 that may be the toy itself", type: "")
    talk.when("number or name (Enter: rescan): ", type: "1\n")
    talk.when("password for Home: ", type: "short\n")
    talk.when("8 to 63 bytes", type: "")
    talk.when("password for Home: ", type: "geheim 12\n")
    talk.when("10 %  waiting for the toy", type: "")
    flag.raise()
    #expect(talk.end(of: pid) == 0, "\(talk.shown)")
    #expect(talk.shown.contains("sent; look at the light") && !talk.shown.contains("geheim") && manager.log.isEmpty)
    #expect(daemon.called.first?.arguments["password"]?["string"]?.string == "geheim 12")
  }

  /// Starts it with --join on a terminal, and waits until the toy's network is joined.
  private func join(
    _ bus: TestBus, _ manager: MockNetworkManager, _ server: SocketServer, _ body: (inout Conversation) -> Void
  ) throws -> (status: Int32, shown: String) {
    let pty = try PTY()
    let pid = try Program.start(
      ["toy", "wifi", "Home", "--join", "--socket", server.path], on: pty, environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
    var talk = Conversation(pty)
    talk.when("password for Home", type: "geheim 12\n")
    body(&talk)
    return (talk.end(of: pid), talk.shown)
  }

  private func waitUntilJoined(_ manager: MockNetworkManager) -> Bool {
    for _ in 0..<10_000 {
      if manager.state.withLock({ $0.active?.id == "vehiclectl Trivio" && $0.active?.state == 2 }) { return true }
      usleep(2_000)
    }
    return false
  }

  @Test func `the toy's network is joined temporarily, the previous one restored`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    let flag = Flag()
    let server = try daemon(until: flag).serve()
    defer { server.stop() }
    let (status, shown) = try join(bus, manager, server) { _ in
      #expect(waitUntilJoined(manager))
      flag.raise()
    }
    #expect(status == 0 && shown.contains("reconnected to \"Home \"5\"\"") && shown.contains("sent; look at the light"), "\(shown)")
    #expect(manager.active == "Home \"5\"" && manager.profiles == ["Home \"5\""])
  }

  @Test func `Ctrl-C after the credentials were sent is reported`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    let server = try daemon(until: Flag(), saying: "sending the credentials for network Home").serve()
    defer { server.stop() }
    let (status, shown) = try join(bus, manager, server) { talk in
      #expect(waitUntilJoined(manager))
      talk.pty.type("\u{3}")
    }
    #expect(status == 1 && shown.contains("interrupted after the toy received its network"), "\(shown)")
  }

  @Test func `Ctrl-C restores the previous network`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    let gone = Flag()
    let server = try daemon(until: Flag(), gone: gone).serve()
    defer { server.stop() }
    let (status, shown) = try join(bus, manager, server) { talk in
      #expect(waitUntilJoined(manager))
      talk.pty.type("\u{3}")
    }
    #expect(gone.wait(), "the daemon sees that the client has disconnected")
    #expect(status == 1 && shown.contains("reconnected to \"Home \"5\"\"") && shown.contains("vehiclectl: interrupted"), "\(shown)")
    #expect(manager.active == "Home \"5\"" && manager.profiles == ["Home \"5\""])
  }

  @Test func `a daemon that gives up restores the previous network, its error is reported`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    let flag = Flag()
    let server = try daemon(until: flag, then: ToyDaemon.refused("no-toy", "no toy came within 5 min")).serve()
    defer { server.stop() }
    let (status, shown) = try join(bus, manager, server) { _ in
      #expect(waitUntilJoined(manager))
      flag.raise()
    }
    #expect(status == 1 && shown.hasSuffix("vehiclectl: toy: no toy came within 5 min (no-toy)\r\n"), "\(shown)")
    #expect(manager.active == "Home \"5\"" && manager.profiles == ["Home \"5\""])
  }

  @Test func `a rejected call leaves the network unchanged`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    let server = try ToyDaemon { _, _ in ToyDaemon.refused("needs-login", "log in first: vehiclectl toy login EMAIL") }.serve()
    defer { server.stop() }
    let (status, shown) = try join(bus, manager, server) { _ in }
    #expect(status == 1 && shown.contains("(needs-login)") && manager.log.isEmpty, "\(shown)")
  }

  @Test func `missing permission to change networks ends the call`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.outcome = .refused("org.freedesktop.NetworkManager.PermissionDenied")
    }
    let server = try daemon(until: Flag()).serve()
    defer { server.stop() }
    let (status, shown) = try join(bus, manager, server) { _ in }
    #expect(status == 7 && shown.contains("NetworkManager denies permission") && manager.log.isEmpty, "\(shown)")
  }
}
