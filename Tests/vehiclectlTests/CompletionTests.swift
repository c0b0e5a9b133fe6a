// Completion in the real shells on a pseudo-terminal: what a line becomes after Tab. Shells that are not installed are skipped.

import ArgumentParser
import Foundation
import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct CompletionTests {
  enum Shell: String, CaseIterable {
    case bash, zsh, fish

    var path: String { "/usr/bin/\(rawValue)" }
    var isInstalled: Bool { access(path, X_OK) == 0 }

    var arguments: [String] {
      switch self {
      case .bash: ["--noprofile", "--norc", "-i"]
      case .zsh: ["-f", "-i"]
      case .fish: ["--no-config", "-i"]
      }
    }

    /// The line that loads the script.
    func setup(_ script: String) -> String {
      switch self {
      case .bash: "set -o emacs; source \(script)"
      case .zsh: "bindkey -e; autoload -Uz compinit; compinit -u -D; source \(script); compdef _vehiclectl vehiclectl"
      case .fish: "source \(script)"
      }
    }
  }

  private static let schema = Contract.Schema(
    device: "ev", kind: "obd",
    Schema(
      properties: [Property("rpm", .int, help: ""), Property("speed", .float, help: "")],
      actions: [Action("query", help: ""), Action("dtc-clear", help: "")]))

  /// The words offered at the end of a line, without their descriptions.
  private func offered(_ line: String) -> [String] {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    return Completion.lines(words).map { String($0.prefix { $0 != "\t" }) }
  }

  @Test func `commands come first, options only after a dash`() {
    let commands = VehicleCtl.configuration.subcommands.compactMap { $0.configuration.commandName }
    #expect(offered("") == commands + ["help"])
    #expect(offered("help ") == commands + ["help"] && offered("help toy wi") == ["wifi"] && offered("help get ").isEmpty)
    #expect(Completion.lines(["stat"]) == ["status\tShow all devices, or one device with its values."])
    #expect(offered("-").contains("--json") && offered("-").allSatisfy { $0.hasPrefix("-") })
    #expect(offered("get --l") == ["--long"] && offered("get --long --l").isEmpty)
    #expect(offered("--color ") == ["auto", "always", "never"] && offered("--color = al") == ["always"])
    #expect(offered("--timeout ").isEmpty && offered("record ev ") == [Completion.files])
    #expect(offered("dtc ").contains("clear") && offered("dtc ev ").isEmpty)
    #expect(offered("completions ") == CompletionShell.allCases.map(\.rawValue))
    #expect(offered("toy login --device toy ").isEmpty)
  }

  @Test func `the devices of cars are offered`() throws {
    let car = Contract.Schema(device: "ev", kind: "obd", Schema(actions: [Action("dtc", help: ""), Action("dtc-clear", help: "")]))
    let server = try SocketServer { _, _ in
      .send(VarlinkReply.message(Contract.Describe.Result(schemas: [car, Contract.Schema(device: "toy", kind: "toy", Schema())])))
    }
    defer { server.stop() }
    #expect(offered("--socket \(server.path) dtc clear ") == ["ev"])
    #expect(offered("--socket \(server.path) dtc --json ") == ["clear", "ev"])
    #expect(offered("--socket \(server.path) status t") == ["toy"] && offered("--socket \(server.path) monitors ").isEmpty)
  }

  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func `commands, options and names are completed behind common options`(_ shell: Shell) throws {
    let server = try SocketServer { method, _ in
      method == Contract.Describe.name ? .send(VarlinkReply.message(Contract.Describe.Result(schemas: [Self.schema]))) : .sendAndClose([])
    }
    defer { server.stop() }
    let directory = "/tmp/vehiclectl-test-\(getpid())-\(shell)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let script = "\(directory)/_vehiclectl"
    try Program.run(["completions", shell.rawValue]).stdout.write(toFile: script, atomically: true, encoding: .utf8)
    let programs = Program.path.split(separator: "/").dropLast().joined(separator: "/")
    let pty = try PTY()
    let pid = try Program.start(
      shell.arguments, on: pty,
      environment: ["PATH": "/\(programs):/usr/bin:/bin", "HOME": directory, "XDG_DATA_HOME": directory, "XDG_CONFIG_HOME": directory],
      program: shell.path)
    var talk = Conversation(pty)
    pty.type("\(shell.setup(script)); printf '<%s>' ready\n")
    let isReady = talk.wait(for: "<ready>")
    try #require(isReady, "\(talk.shown)")
    for (typed, completed) in [
      ("--json ge\t", "--json get"), ("--timeout 2 --color never descr\t", "--timeout 2 --color never describe"),
      ("-q dtc cle\t", "-q dtc clear"), ("--json camera snap\t", "--json camera snapshot"), ("toy --json logo\t", "toy --json logout"),
      ("--tim\t", "--timeout"), ("get --lo\t", "get --long"),
      ("--json watch --inter\t", "--json watch --interval"),
      ("--socket \(server.path) get ev.sp\t", "--socket \(server.path) get ev.speed"),
      ("--socket \(server.path) dtc clear e\t", "--socket \(server.path) dtc clear ev"), ("help histo\t", "help history"),
      ("help toy regi\t", "help toy register"), ("log --level war\t", "log --level warning"),
      ("import --output /etc/passw\t", "import --output /etc/passwd"),
      ("-v do --socket \(server.path) que\t", "-v do --socket \(server.path) query"),
    ] {
      // Ctrl-A puts the cursor in front of the line, so that it is printed instead of run.
      pty.type("vehiclectl \(typed)\u{1}printf '<%s>' \n")
      let words = (["vehiclectl"] + completed.split(separator: " ").map(String.init)).map { "<\($0)>" }.joined()
      let isCompleted = talk.wait(for: words)
      try #require(isCompleted, "\(typed): \(talk.shown.suffix(500))")
    }
    pty.type("exit\n")
    let status = talk.end(of: pid)
    #expect(status == 0)
  }
}
