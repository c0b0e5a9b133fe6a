// record: writes all traffic on a device's links to a file in the recording format. The daemon never opens a path that a client names.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct RecordCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "record", abstract: "Record the traffic on a device's links.",
    discussion: """
      Runs until interrupted, or for --seconds. To play back the file, set link = "replay:/PATH" in the configuration. Devices of kind can \
      are recorded as a log of can-utils (candump -L), which plays back in the same way.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: "Stop after this many seconds.", transform: WatchCommand.positive)
  var seconds: Int?
  @Flag(help: "Write the frames of a device with a CAN adapter as a log of can-utils (default for kind can).")
  var candump = false
  @Flag(help: "Overwrite an existing file.")
  var force = false
  @Argument(help: "The device.", completion: .devices)
  var device: String
  @Argument(help: "The file to write; - is stdout.", completion: .file())
  var file: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    Interrupt.catchSignals()
    var start: Double?  // the time of the first line
    var descriptor: Int32?  // the file is created with the first line
    var count = 0
    var size = 0
    var reported = 0.0
    var log: FrameLog?
    defer {
      if file != "-" { output.progress(nil) }
      if let descriptor, descriptor != STDOUT_FILENO { close(descriptor) }
      if descriptor != nil, output.json, file != "-" {
        output.json(["lines": .int(count), "bytes": .int(size)])
      } else if descriptor != nil {
        output.note("recorded \(Self.amount(count, size)) in \(Format.duration(start.map { Clock.monotonic - $0 } ?? 0))")
      }
    }
    try client.stream(Contract.Record.self, .init(device: device), firstReply: common.replyTimeout, tick: 0.2, laterReplies: nil) {
      result in
      if let result {
        if start == nil { log = FrameLog(result.line, device: device, isWanted: candump) }
        start = start ?? Clock.monotonic
        let text = try log?.lines(of: result.line) ?? [Output.oneLine(result.line)]
        let line = Array(text.map { $0 + "\n" }.joined().utf8)
        let target = try descriptor ?? (file == "-" ? STDOUT_FILENO : Self.create(file, force: force))
        descriptor = target
        if line.isEmpty {
        } else if target == STDOUT_FILENO {
          output.bytes(line)
        } else if !Output.write(all: line[...], to: target) {
          let error = errno
          if count == 0, !force { unlink(file) }  // created here and empty
          throw Failure.other(
            "cannot write \(file): \(String(cString: strerror(error)))\(count == 0 ? "" : "; the file is incomplete")")
        }
        count += text.count
        size += line.count
      }
      guard let start else {  // nothing was recorded
        if Interrupt.received { throw Failure.other("interrupted") }
        return true
      }
      let elapsed = Clock.monotonic - start
      if file != "-", elapsed - reported >= 0.5 {
        reported = elapsed
        output.progress("recording \(device): \(Self.amount(count, size)) in \(Format.duration(elapsed)); press Ctrl-C to stop")
      }
      return !Interrupt.received && seconds.map { Clock.monotonic - start < Double($0) } ?? true
    }
  }

  static func amount(_ lines: Int, _ bytes: Int) -> String { "\(lines) line\(lines == 1 ? "" : "s"), \(bytes) bytes" }

  /// Creates the file. Does not follow a symbolic link, which another user may have placed in a shared directory.
  static func create(_ path: String, force: Bool) throws(Failure) -> Int32 {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (force ? O_TRUNC : O_EXCL), 0o644)
    if descriptor >= 0 { return descriptor }
    if errno == ELOOP { throw .usage("cannot write \(path): it is a symbolic link; name the file itself") }
    guard errno == EEXIST else { throw .other("cannot write \(path): \(String(cString: strerror(errno)))") }
    throw .usage("cannot write \(path): it exists; specify another file, or use --force to overwrite it")
  }
}
