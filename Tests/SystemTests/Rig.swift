// The environment of one test: its own directory, and the real programs as they were built. Programs that a test starts end
// with it, by PID.

import CLinux
import Foundation
import Synchronization
import Testing

/// A program that runs until it is stopped.
final class Program: @unchecked Sendable {
  let process = Process()
  private let output = Pipe()
  /// Stays open for as long as the program runs.
  private let stdin = Pipe()
  private let lock = NSLock()
  private var collected = Data()
  private var hasAllOutput = false
  /// Where its standard error goes.
  let errorFile: String

  init(
    _ path: String, _ arguments: [String], environment: [String: String] = [:], in directory: String, input: String? = nil,
    terminal: Terminal? = nil
  ) throws {
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.standardInput = input == nil ? FileHandle.nullDevice : stdin
    process.standardOutput = terminal?.file ?? output
    errorFile = "\(directory)/\(URL(fileURLWithPath: path).lastPathComponent)-\(UUID().uuidString.prefix(8)).err"
    _ = FileManager.default.createFile(atPath: errorFile, contents: nil)
    let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: errorFile))
    defer { try? errors.close() }
    process.standardError = errors
    try process.run()
    if let input { stdin.fileHandleForWriting.write(Data(input.utf8)) }
    let reader = output.fileHandleForReading
    Thread.detachNewThread { [weak self] in
      while case let data = reader.availableData, !data.isEmpty { self?.collect(data) }
      self?.collect(nil)
      try? reader.close()
    }
  }

  /// Adds output; nil at its end.
  private func collect(_ data: Data?) {
    lock.withLock { if let data { collected.append(data) } else { hasAllOutput = true } }
  }

  /// Foundation's Process and its pipes outlive their last reference. With more than 1300 open descriptors it may fail to start
  /// another process, because it reads past the end of /proc/self/fd.
  deinit {
    end(SIGKILL)
    try? output.fileHandleForWriting.close()
    closeBoth(stdin)
  }

  /// Writes to its standard input, which was opened with `input`.
  func writeInput(_ text: String) { try? stdin.fileHandleForWriting.write(contentsOf: Data(text.utf8)) }
  /// Writes a line every 50 ms until a condition holds, for at most 15 s.
  func feed(_ line: String, until condition: () -> Bool) -> Bool {
    var holds = false
    _ = wait(seconds: 15) {
      guard isRunning else { return true }
      writeInput(line + "\n")
      holds = condition()
      if !holds { usleep(40_000) }
      return holds
    }
    return holds || condition()
  }

  /// Closes its standard input.
  func closeInput() { try? stdin.fileHandleForWriting.close() }

  var pid: Int32 { process.processIdentifier }
  var isRunning: Bool { pid > 0 && exitStatus == nil }
  /// Its standard output so far.
  var stdout: String { lock.withLock { String(decoding: collected, as: UTF8.self) } }
  /// Its standard error so far.
  var stderr: String { (try? String(contentsOfFile: errorFile, encoding: .utf8)) ?? "" }

  func signal(_ number: Int32) { kill(pid, number) }

  /// Whether it is stopped by a signal.
  var isStopped: Bool {
    let state = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8))?.split(separator: ")").last
    return state?.hasPrefix(" T") == true
  }

  /// The voluntary context switches of each thread. The difference of two readings is the number of wake-ups.
  func switches() throws -> [String: Substring] {
    var counts: [String: Substring] = [:]
    for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task") {
      let status = try? String(contentsOfFile: "/proc/\(pid)/task/\(thread)/status", encoding: .utf8)
      counts[thread] = status?.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
    }
    return counts
  }

  /// Ends it and returns its exit status (negative: the signal that ended it), or nil if it does not end within 5 s.
  @discardableResult func end(_ number: Int32 = SIGTERM) -> Int32? {
    if isRunning { kill(pid, number) }
    return status(within: 5)
  }

  /// Its exit status once it has ended by itself.
  func status(within seconds: Double) -> Int32? {
    // What was read once is kept: while `Process` reaps it, there is nothing to read for a moment.
    var status: Int32?
    _ = wait(seconds: seconds) {
      status = exitStatus
      return status != nil || pid <= 0
    }
    return status
  }

  /// Its exit status (negative: the signal that ended it); nil while it runs. From the kernel: for `Process` a program runs
  /// for as long as one of its children holds a pipe open.
  private var exitStatus: Int32? {
    guard pid > 0 else { return nil }
    var info = siginfo_t()
    if waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 {
      let status = info._sifields._sigchld.si_status
      return info._sifields._sigchld.si_pid == 0 ? nil : info.si_code == CLD_EXITED ? status : -status
    }
    // `Process` has reaped it, or is about to report it.
    guard !process.isRunning else { return nil }
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }

  /// Its result, once it has ended by itself; after 120 s it is killed. Later output of its children is not included.
  func outcome() -> Outcome {
    let status = status(within: 120) ?? end(SIGKILL) ?? -1
    _ = wait(seconds: 1) { lock.withLock { hasAllOutput } }
    return Outcome(status: status, output: stdout, errors: stderr)
  }
}

/// Closes both ends of a pipe.
private func closeBoth(_ pipe: Pipe) {
  try? pipe.fileHandleForReading.close()
  try? pipe.fileHandleForWriting.close()
}

/// A terminal for a program to draw on, seen from the other end.
final class Terminal {
  fileprivate let file: FileHandle
  private let descriptor: Int32
  private var drawn: [UInt8] = []

  init() throws {
    var (controller, follower): (Int32, Int32) = (-1, -1)
    try #require(openpty(&controller, &follower, nil, nil, nil) == 0)
    for end in [controller, follower] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(controller, F_SETFL, O_NONBLOCK)
    descriptor = controller
    file = FileHandle(fileDescriptor: follower, closeOnDealloc: true)
  }

  deinit { close(descriptor) }

  /// The output since the last call.
  func look() -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = read(descriptor, &buffer, buffer.count), count > 0 { drawn += buffer[..<count] }
    defer { drawn = [] }
    return String(decoding: drawn, as: UTF8.self)
  }

  func type(_ text: String) { _ = write(descriptor, text, text.utf8.count) }

  /// The output until a condition holds, or nil after a timeout. Reading the output makes room for more.
  func drawn(until isDone: () -> Bool) -> String? {
    var all = ""
    let inTime = wait {
      all += look()
      return isDone()
    }
    return inTime ? all + look() : nil
  }

  /// Waits until this text is in the output.
  func shows(_ text: String) -> Bool {
    var all = ""
    return wait {
      all += look()
      return all.contains(text)
    }
  }
}

/// The result of a program that has ended.
struct Outcome {
  var status: Int32
  var output: String
  var errors: String

  var lines: [Substring] { output.split(separator: "\n") }

  /// The output as JSON.
  func json() throws -> [String: Any] {
    try #require(JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
  }
}

/// The tests that start the real programs, one after the other, because they would compete for the CPUs.
@Suite("The whole rig", .serialized) enum EndToEnd {}

/// Those that wait for programs rather than for devices, and those that use much CPU time. They run beside the others, one after the other
/// as well, which takes less time on two processors.
@Suite("The services", .serialized) enum EndToEndServices {}

final class Rig {
  let directory: String
  var socket: String { "\(directory)/socket" }
  var configuration: String { "\(directory)/vehicled.toml" }

  init() throws {
    var template = Array("/tmp/vehicled-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } }
    directory = try #require(made)
  }

  deinit {
    programs.forEach { $0.end(SIGKILL) }
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The programs that are ended with this rig.
  private var programs: [Program] = []

  func start(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws -> Program {
    let program = try Program("\(Self.programs)/\(name)", arguments, environment: environment, in: directory)
    programs.append(program)
    return program
  }

  /// The folder with the built programs: beside the test bundle.
  static let programs: String = {
    if let given = ProcessInfo.processInfo.environment["VEHICLED_PROGRAMS"] { return given }
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
    var folder = URL(fileURLWithPath: bundle).standardizedFileURL
    while folder.path != "/", !FileManager.default.isExecutableFile(atPath: folder.appendingPathComponent("vehicled").path) {
      folder.deleteLastPathComponent()
    }
    return folder.path
  }()

  /// A Python with the packages that the tests use; `make test` creates it.
  static let python: String =
    ProcessInfo.processInfo.environment["VEHICLED_PYTHON"]
    ?? URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
    + "/.venv/bin/python"

  func write(_ text: String, to path: String? = nil) throws {
    try text.write(toFile: path ?? configuration, atomically: true, encoding: .utf8)
  }

  /// A simulator and the URL of its link.
  func simulator(_ arguments: String..., on place: String = "tcp:127.0.0.1:0") throws -> (program: Program, link: String) {
    let program = try start("vehiclesim", ["obd", "--on", place] + arguments)
    let isReady = wait { program.stdout.contains("\n") }
    try #require(isReady, "the simulator prints nothing: \(program.stderr)")
    return (program, program.stdout.split(separator: "\n").first.map(String.init) ?? "")
  }

  /// A daemon that answers on its socket.
  func daemon(environment: [String: String] = [:], arguments: String...) throws -> Program {
    let program = try start(
      "vehicled", ["--config", configuration, "--socket", socket, "--state", "\(directory)/state"] + arguments, environment: environment)
    let answers = wait { !program.isRunning || vehiclectl("version").status == 0 }
    try #require(answers && program.isRunning, "the daemon does not answer: \(program.stderr)")
    return program
  }

  /// A private message bus, and the environment that makes it the system bus.
  func bus() throws -> (program: Program, environment: [String: String]) {
    let address = "unix:path=\(directory)/bus"
    let program = try Program(
      "/usr/bin/dbus-daemon", ["--session", "--nofork", "--nopidfile", "--print-address", "--address=\(address)"], in: directory)
    programs.append(program)
    try #require(wait { program.stdout.contains("\n") }, "no bus: \(program.stderr)")
    return (program, ["DBUS_SYSTEM_BUS_ADDRESS": address])
  }

  /// A simulated adapter on the bus of this rig.
  func peripheral(_ arguments: [String] = []) throws -> Program {
    let program = try start("vehiclesim", ["obd", "--on", "ble:unix:path=\(directory)/bus"] + arguments)
    try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
    return program
  }

  /// A daemon with one simulated car that is being polled.
  func ev(_ simulatorArguments: String..., options: String = "") throws -> (daemon: Program, simulator: Program) {
    let program = try start("vehiclesim", ["obd", "--on", "tcp:127.0.0.1:0"] + simulatorArguments)
    try #require(wait { program.stdout.contains("\n") })
    let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
    try write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n\(options)\n")
    return (try daemon(), program)
  }

  func vehiclectl(_ arguments: String..., input: String? = nil) -> Outcome {
    run("\(Self.programs)/vehiclectl", ["--socket", socket] + arguments, input: input)
  }

  /// Runs a program to its end, at most 120 seconds.
  func run(_ path: String, _ arguments: [String], input: String? = nil) -> Outcome {
    do {
      let program = try Program(path, arguments, in: directory, input: input)
      program.closeInput()
      return program.outcome()
    } catch {
      return Outcome(status: -1, output: "", errors: "\(error)")
    }
  }

  /// What `vehiclectl get` prints for one property, or nil.
  func get(_ reference: String) -> String? {
    let outcome = vehiclectl("get", reference)
    return outcome.status == 0 ? outcome.output.trimmingCharacters(in: .newlines) : nil
  }
}

/// Whether a sanitizer instruments the tests and the programs, which makes them several times slower.
let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// Waits until a condition holds, by default for at most 10 s; under a sanitizer four times as long.
func wait(seconds: Double = 10, _ condition: () -> Bool) -> Bool {
  let deadline = Date().addingTimeInterval(isSanitized ? 4 * seconds : seconds)
  while Date() < deadline {
    if condition() { return true }
    usleep(10000)
  }
  return condition()
}

/// A connection to the control socket for arbitrary bytes, which a well-behaved client would not send.
final class RawClient {
  let descriptor: Int32
  private var buffer: [UInt8] = []

  init(_ path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    try #require(result == 0)
    limitTime(of: descriptor, seconds: 10)
  }

  deinit { close(descriptor) }

  /// Sends bytes; false if the daemon has disconnected.
  @discardableResult func send(_ bytes: [UInt8]) -> Bool { sendAll(bytes, to: descriptor) }

  @discardableResult func send(_ json: String) -> Bool { send(Array(json.utf8) + [0]) }

  /// The next message, or nil at the end of the connection.
  func next() -> [String: Any]? {
    while true {
      if let end = buffer.firstIndex(of: 0) {
        let message = Data(buffer[..<end])
        buffer.removeSubrange(...end)
        return try? JSONSerialization.jsonObject(with: message) as? [String: Any]
      }
      var chunk = [UInt8](repeating: 0, count: 65536)
      let count = recv(descriptor, &chunk, chunk.count, 0)
      if count <= 0 { return nil }
      buffer.append(contentsOf: chunk[..<count])
    }
  }
}

struct NoFreePort: Error {}

/// The port that `freePort` has returned last. They are below those that the kernel gives to connections, and to listeners on port 0.
private let lastPort = Mutex(21_000 + UInt16(getpid() % 9_000))

/// A TCP port that nothing uses. No two calls return the same one.
func freePort() throws -> UInt16 {
  for _ in 0..<1_000 {
    let port = lastPort.withLock { port in
      port = port < 31_999 ? port + 1 : 21_000
      return port
    }
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isFree = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
    }
    if isFree { return port }
  }
  throw NoFreePort()
}

/// A connection to this port of the loopback address, whose operations end after some seconds.
func connection(to port: UInt16, seconds: Int = 10) throws -> Int32 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  let result = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
  }
  try #require(result == 0)
  limitTime(of: descriptor, seconds: seconds)
  return descriptor
}

private func limitTime(of descriptor: Int32, seconds: Int) {
  var limit = timeval(tv_sec: seconds, tv_usec: 0)
  for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
    setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
  }
}

/// Sends bytes; false if the other side has disconnected.
func sendAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    if count <= 0 { return false }
    rest = rest.dropFirst(count)
  }
  return true
}
