// record: every byte of a device's links into a file that vehiclectl itself opens; the daemon never opens a path that a
// client names. The lines are the recording format, a header first.

import ArgumentParser
import Glibc
import Protocols

struct RecordCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "record", abstract: "Record every byte of a device's links.",
    discussion: "Lasts until interrupted, or for --seconds. The device may be replayed from the file with link = \"replay:/PATH\".")

  @OptionGroup var common: CommonOptions
  @Option(help: "Stop after this long.", transform: WatchCommand.positive)
  var seconds: Int?
  @Flag(help: "Overwrite the file.")
  var force = false
  @Argument(help: "The device.", completion: .devices)
  var device: String
  @Argument(help: "The file to write, - for stdout.", completion: .file())
  var file: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    Interrupt.catchSignals()
    var start: Double?  // when the first line came
    var descriptor: Int32?  // the file is made when the first line is there, not for a device that is not
    var count = 0
    var size = 0
    defer {
      if let descriptor, descriptor != STDOUT_FILENO { close(descriptor) }
      if descriptor != nil, output.json, file != "-" {
        output.json(["lines": .int(count), "bytes": .int(size)])
      } else if descriptor != nil {
        output.note("recorded \(count) lines, \(size) bytes in \(Format.duration(start.map { Clock.monotonic - $0 } ?? 0))")
      }
    }
    try client.stream(Contract.Record.self, .init(device: device), first: common.replyTimeout, tick: 0.2, silence: nil) { result in
      if let result {
        start = start ?? Clock.monotonic
        let line = Array((Output.oneLine(result.line) + "\n").utf8)
        let place = try descriptor ?? (file == "-" ? STDOUT_FILENO : Self.create(file, force: force))
        descriptor = place
        if place == STDOUT_FILENO {
          output.bytes(line)
        } else if !Output.write(all: line[...], to: place) {
          let error = errno
          if count == 0, !force { unlink(file) }  // ours, and nothing is in it
          throw Failure.other(
            "cannot write \(file): \(String(cString: strerror(error)))\(count == 0 ? "" : "; what was written so far stays")")
        }
        count += 1
        size += line.count
      }
      guard let start else {  // nothing is recorded yet: to end now is no success
        if Interrupt.received { throw Failure.other("interrupted") }
        return true
      }
      return !Interrupt.received && seconds.map { Clock.monotonic - start < Double($0) } ?? true
    }
  }

  /// Never through a link: in a directory of many it may lead to somebody's file.
  static func create(_ path: String, force: Bool) throws(Failure) -> Int32 {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (force ? O_TRUNC : O_EXCL), 0o644)
    if descriptor >= 0 { return descriptor }
    if errno == ELOOP { throw .usage("\(path) is a link; name the file itself") }
    guard errno == EEXIST else { throw .other("cannot write \(path): \(String(cString: strerror(errno)))") }
    throw .usage("\(path) is there already; name another file, or overwrite it with --force")
  }
}
