// Mocks for the toy tests: a daemon with a toy behind its socket, and the program with pipes or on a pseudo-terminal.

import CLinux
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

/// A daemon with these devices that records calls of actions and replies with a closure.
final class ToyDaemon: Sendable {
  struct Called: Equatable {
    var device: String
    var action: String
    var arguments: JSON
  }

  private let calls = Mutex<[Called]>([])
  private let devices: [Contract.Device]
  private let actions: [Action]
  private let reply: @Sendable (Called, _ connection: Int32) -> Answer

  var called: [Called] { calls.withLock { $0 } }

  init(
    devices: [(name: String, kind: String)] = [("toy", "toy")], states: [String: String] = [:], actions: [Action] = [],
    _ reply: @escaping @Sendable (Called, _ connection: Int32) -> Answer = { _, _ in ToyDaemon.done(Report(text: "done")) }
  ) {
    self.devices = devices.map { Contract.Device(name: $0.name, kind: $0.kind, state: states[$0.name] ?? "ready") }
    self.actions = actions
    self.reply = reply
  }

  static func done(_ report: Report) -> Answer { .send(VarlinkReply.message(Contract.Call.Result(report))) }
  static func refused(_ code: String, _ words: String) -> Answer {
    .send(VarlinkReply.message(.deviceError(device: "toy", code: code, message: words)))
  }

  func serve() throws -> SocketServer { try SocketServer { self.answer($0, $1, $2) } }

  private func answer(_ connection: Int32, _ method: String, _ parameters: JSON) -> Answer {
    switch method {
    case Contract.Status.name:
      let named = parameters["device"]?.string
      let found = devices.filter { named == nil || $0.name == named }
      if let named, found.isEmpty { return .send(VarlinkReply.message(.noSuchDevice(device: named))) }
      return .send(VarlinkReply.message(Contract.Status.Result(devices: found)))
    case Contract.Describe.name:
      let schemas = devices.map { Contract.Schema(device: $0.name, kind: $0.kind, Schema(actions: actions)) }
      return .send(VarlinkReply.message(Contract.Describe.Result(schemas: schemas)))
    case Contract.Call.name:
      let called = Called(
        device: parameters["device"]?.string ?? "", action: parameters["action"]?.string ?? "", arguments: parameters["arguments"] ?? [:])
      calls.withLock { $0.append(called) }
      return reply(called, connection)
    default: return .sendAndClose([])
    }
  }
}

/// The program, built beside the tests.
enum Program {
  struct Outcome {
    /// As in a shell: 128 plus the signal number if a signal ended it.
    var status: Int32
    var stdout: String
    var stderr: String
  }

  static var path: String {
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
    return bundle.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/vehiclectl"
  }

  /// Runs it to its end with this text on stdin.
  static func run(_ arguments: [String], input: String = "", environment: [String: String] = [:]) throws -> Outcome {
    let files = try (0..<3).map { _ in try temporary() }
    defer { for file in files { close(file) } }
    _ = Output.write(all: Array(input.utf8)[...], to: files[0])
    lseek(files[0], 0, SEEK_SET)
    let pid = try start(arguments, environment: environment) { actions in
      for (number, file) in files.enumerated() { posix_spawn_file_actions_adddup2(&actions, file, Int32(number)) }
    }
    let status = end(of: pid)
    return Outcome(status: status, stdout: text(of: files[1]), stderr: text(of: files[2]))
  }

  /// Starts it as the leader of a session on the terminal.
  static func start(
    _ arguments: [String], on pty: PTY, environment: [String: String] = [:], program: String = path
  ) throws -> pid_t {
    let terminal = pty.path
    return try start(arguments, environment: environment, program: program) { actions in
      posix_spawn_file_actions_addopen(&actions, 0, terminal, O_RDWR, 0)
      posix_spawn_file_actions_adddup2(&actions, 0, 1)
      posix_spawn_file_actions_adddup2(&actions, 0, 2)
    }
  }

  /// Runs it to its end on the terminal. `each` sees the output so far after each part of it.
  static func run(
    _ arguments: [String], on pty: PTY, environment: [String: String] = [:], each: (pid_t, String) -> Void = { _, _ in }
  ) throws -> (status: Int32, shown: String) {
    let pid = try start(arguments, on: pty, environment: environment)
    var (shown, status, looks) = ("", Int32(0), 0)
    while waitpid(pid, &status, WNOHANG) == 0 {
      let more = pty.shown()
      shown += more
      if !more.isEmpty { each(pid, shown) }
      usleep(1_000)
      looks += 1
      if looks == 30_000 { kill(pid, SIGKILL) }  // it would never end
    }
    return (status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f, shown + pty.shown())
  }

  /// Waits for its end.
  static func end(of pid: pid_t) -> Int32 {
    var status: Int32 = 0
    var looks = 0
    while waitpid(pid, &status, WNOHANG) == 0 {
      usleep(2_000)
      looks += 1
      if looks == 45_000 { kill(pid, SIGKILL) }  // it would never end
    }
    let signal = status & 0x7f
    return signal == 0 ? status >> 8 & 0xff : 128 + signal
  }

  private static func start(
    _ arguments: [String], environment: [String: String], program: String = path, _ prepare: (inout posix_spawn_file_actions_t) -> Void
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    posix_spawnattr_setflags(&attributes, 0x80)  // POSIX_SPAWN_SETSID: what it opens next is its terminal
    prepare(&actions)
    // No system bus unless the test sets one.
    let given = ["NO_COLOR": "1", "TERM": "xterm", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus"]
      .merging(environment) { $1 }
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var variables: [UnsafeMutablePointer<CChar>?] = given.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for variable in variables { free(variable) } }
    var pid: pid_t = 0
    try #require(posix_spawn(&pid, program, &actions, &attributes, &words, &variables) == 0)
    return pid
  }

  /// A file without a name.
  private static func temporary() throws -> Int32 {
    var template = Array("/tmp/vehiclectl-test-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    try #require(file >= 0)
    _ = fcntl(file, F_SETFD, FD_CLOEXEC)
    unlink(template)
    return file
  }

  private static func text(of file: Int32) -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    lseek(file, 0, SEEK_SET)
    while case let count = read(file, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A user at a terminal who types when a prompt appears.
struct Conversation {
  let pty: PTY
  private(set) var shown = ""

  init(_ pty: PTY) { self.pty = pty }

  /// Waits until this text appears, then types.
  mutating func when(_ words: String, type text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let found = wait(for: words)
    #expect(found, "\(words) was not shown, but: \(shown)", sourceLocation: sourceLocation)
    pty.type(text)
  }

  private var read = 0

  mutating func wait(for words: String) -> Bool {
    for _ in 0..<15_000 {
      shown += pty.shown()
      let rest = shown.utf8.dropFirst(read)
      if let range = String(rest)?.firstRange(of: words) {
        read += String(rest)?[..<range.upperBound].utf8.count ?? 0
        return true
      }
      usleep(2_000)
    }
    return false
  }

  /// Reads to the end of the program and returns its status.
  mutating func end(of pid: pid_t) -> Int32 {
    var status: Int32 = 0
    var looks = 0
    while waitpid(pid, &status, WNOHANG) == 0 {
      shown += pty.shown()
      usleep(2_000)
      looks += 1
      if looks == 45_000 { kill(pid, SIGKILL) }  // it would never end
    }
    // The last output may still be in the terminal.
    var quiet = 0
    while quiet < 5 {
      let more = pty.shown()
      quiet = more.isEmpty ? quiet + 1 : 0
      shown += more
      usleep(2_000)
    }
    return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
  }
}
