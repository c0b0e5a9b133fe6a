// drive: takes the motion lease of a device and passes set-points on, a line of JSON each, from stdin. Never repeats one by
// itself: who feeds it holds the dead man's handle, and the vehicle stops when the lines do.

import ArgumentParser
import Glibc
import Protocols

struct DriveCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "drive", abstract: "Drive a device with set-points from stdin.",
    discussion: """
      Each line is an object of motion properties, as in {"target-current": 2.5}; "vehiclectl describe" marks them. A line \
      counts as it is read: of several that wait only the last is passed on. One must \
      come within every deadline, or the lease is lost and the vehicle is stopped; so it is at the end of the input, on Ctrl-C, \
      and when the link or the daemon fails. One drives at a time.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String
  @Option(help: ArgumentHelp("How long lines may stay away, in milliseconds.", valueName: "ms"))
  var deadline = Contract.Drive.usualDeadline

  func validate() throws {
    guard Contract.Drive.deadlines.contains(deadline) else {
      throw ValidationError(
        "--deadline \(deadline) is not possible: give \(Contract.Drive.deadlines.lowerBound) to \(Contract.Drive.deadlines.upperBound)")
    }
  }

  func perform(_ output: Output) throws {
    Interrupt.catchSignals()
    let (holder, driver) = (try common.connect(output), try common.connect(output))
    let schema = try holder.call(Contract.Describe.self, Contract.Describe.Parameters(device: device)).schemas.first
    let properties = schema?.properties.filter(\.motion) ?? []
    var lines = LineReader(STDIN_FILENO)
    var lease: String?
    var number = 0
    // The lease lives as long as this stream; once it is there lines are looked for whenever it has nothing to say.
    let parameters = Contract.Drive.Parameters(device: device, deadlineMilliseconds: deadline)
    try holder.stream(
      Contract.Drive.self, parameters, first: common.patience, silence: nil, also: { lease == nil ? -1 : STDIN_FILENO }
    ) { result in
      if Interrupt.came { return false }
      if let result {
        lease = result.lease
        output.note("driving \(device): a line of JSON at least every \(deadline) ms; end with Ctrl-D")
      }
      guard let lease else { return true }
      // Only what was said last counts: a line that waited is no hand at the handle.
      var last: String?
      while let line = try lines.next() {
        number += 1
        if !line.allSatisfy(\.isWhitespace) { last = line }
      }
      if let last { try drive(last, number, properties, lease, driver) }
      return !lines.hasEnded
    }
  }

  private func drive(_ line: String, _ number: Int, _ properties: [Contract.Property], _ lease: String, _ driver: Client) throws {
    guard case .object(let members)? = JSON(line) else {
      throw Failure.usage("line \(number) is no JSON object; write {\"PROPERTY\": VALUE}, as in {\"target-current\": 2.5}")
    }
    guard members.count == 1 else {
      throw Failure.usage("line \(number) names \(members.count) motion properties; give one, for each takes the place of the other")
    }
    for member in members {
      let name = member.key
      guard let property = properties.first(where: { $0.name == name }) else {
        let known = properties.map(\.name).joined(separator: ", ")
        throw Failure.usage("line \(number): \(device) has no motion property \"\(name)\"; it has \(known.isEmpty ? "none" : known)")
      }
      let value: Value
      do { value = try SetCommand.value(member.value.string ?? member.value.text, for: property, of: device) } catch {
        throw Failure.usage("line \(number): \(error.message)")
      }
      _ = try driver.call(Contract.Set.self, Contract.Set.Parameters(device: device, property: name, value: value, lease: lease))
    }
  }
}

/// Lines of a descriptor as they come, without waiting for one.
struct LineReader {
  private let descriptor: Int32
  private var pending: [UInt8] = []
  private(set) var hasEnded = false
  private static let longest = 65_536

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// The next whole line, or nil while there is none.
  mutating func next() throws -> String? {
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pending.removeSubrange(...end) }
        return String(decoding: pending[..<end], as: UTF8.self)
      }
      guard !hasEnded, isReady else { return nil }
      guard pending.count < Self.longest else { throw Failure.usage("a line of more than \(Self.longest) bytes; end each with a newline") }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &chunk, chunk.count)
      if count > 0 {
        pending += chunk[..<count]
      } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
        hasEnded = true
        if !pending.isEmpty { pending.append(UInt8(ascii: "\n")) }
      }
    }
  }

  private var isReady: Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }
}
