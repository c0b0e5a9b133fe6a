// The guardian: a small process beside the daemon that holds duplicates of the descriptors over which something is driven,
// and the wills that go with them. When the daemon dies, by whatever signal, it says what is to be said to the dead one's
// vehicles and ends; when the daemon is there but frozen while somebody drives, it stops them. It understands no byte of
// what it says, allocates little, waits in poll(2) and outlives everything that ends the daemon.

import CLinux
import Glibc
import Protocols

struct GuardianProcess {
  /// The daemon's first argument that makes it one.
  static let argument = "--guardian"
  /// Where it finds the daemon.
  static let socket: CInt = 3
  /// Whom a link that takes nothing may keep waiting.
  private static let timeout: Nanoseconds = 2 * .second

  private struct Ward {
    let descriptor: CInt
    let will: Will
    /// When the daemon counts as frozen; nil: nobody drives.
    var deadline: Instant?
    /// What is still to be said, and when the next of it is due.
    var speech: ArraySlice<Will.Message> = []
    var due: Instant = 0
    /// How often the link did not take the next of it, 5 ms apart.
    var tries = 0

    mutating func speak(_ messages: [Will.Message], at now: Instant) {
      deadline = nil
      speech = messages[...]
      due = now + (messages.first?.pause ?? 0)
      tries = 0
    }

    /// Says what is due. A link that takes nothing is tried again until it is given up.
    mutating func goOn(at now: Instant) {
      while let message = speech.first, now >= due {
        let count = message.bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno == EAGAIN || errno == EINTR, tries < 400 {
          tries += 1
          return due = now + 5 * .millisecond
        }
        if count < 0 { return speech = [] }
        tries = 0
        // A message that was cut cannot be mended: what follows it makes itself heard.
        speech = speech.dropFirst()
        due = now + (speech.first?.pause ?? 0)
      }
    }
  }

  private let socket: CInt
  private var wards: [UInt16: Ward] = [:]
  private var isOrphan = false

  init(socket: CInt) { self.socket = socket }

  /// Runs for as long as the daemon does, and a moment longer.
  static func main() -> Never {
    // It was started with all signals blocked, and so they stay: whoever ends the daemon's whole group or unit must not end
    // the guardian before it has spoken. Its end is the daemon's.
    setsid()
    clinux_name_thread("vehicled-guard")
    OutOfMemory.protectGuardian()
    var guardian = GuardianProcess(socket: socket)
    guardian.run()
    exit(0)
  }

  mutating func run() {
    var buffer = [UInt8](repeating: 0, count: GuardianMessage.longest)
    while !isOrphan || wards.values.contains(where: { !$0.speech.isEmpty }) {
      var entry = pollfd(fd: isOrphan ? -1 : socket, events: Int16(POLLIN), revents: 0)
      let next = wards.values.compactMap { $0.speech.isEmpty ? $0.deadline : $0.due }.min()
      _ = clinux_poll(&entry, 1, next.map { max(0, $0 - Clock.monotonic()) } ?? -1)
      // What the daemon has said counts before what it has not.
      while !isOrphan, listen(&buffer) {}
      let now = Clock.monotonic()
      for ward in wards.keys { look(after: ward, at: now) }
    }
    hangUp()
  }

  /// A connection that is closed over bytes that nobody has read is cut, and what was said last is lost with it: they are read,
  /// and what was said is waited for.
  private func hangUp() {
    let limit = Clock.monotonic() + Self.timeout
    var bytes = [UInt8](repeating: 0, count: 4096)
    for ward in wards.values {
      repeat {
        while read(ward.descriptor, &bytes, bytes.count) > 0 {}
        if clinux_unsent(ward.descriptor) <= 0 { break }
        usleep(2000)
      } while Clock.monotonic() < limit
      close(ward.descriptor)
    }
  }

  private mutating func look(after number: UInt16, at now: Instant) {
    guard var ward = wards[number] else { return }
    if let deadline = ward.deadline, now >= deadline, !isOrphan {
      ward.speak(ward.will.frozen, at: now)
      complain("the daemon is frozen: its guardian stops what it drives")
      let word: [UInt8] = [UInt8(number >> 8), UInt8(number & 0xFF)]
      _ = clinux_send(socket, word, word.count, -1)
    }
    ward.goOn(at: now)
    wards[number] = ward
  }

  /// Takes one packet; false when there is none.
  private mutating func listen(_ buffer: inout [UInt8]) -> Bool {
    var descriptor: CInt = -1
    let count = clinux_receive(socket, &buffer, buffer.count, &descriptor)
    if count == -Int(EAGAIN) { return false }
    if count == -Int(EINTR) { return true }
    guard count > 0 else {
      orphaned()
      return false
    }
    let now = Clock.monotonic()
    switch GuardianMessage(buffer.prefix(count)) {
    case .keep(let number, let will):
      guard descriptor >= 0 else { return true }
      let before = wards.updateValue(Ward(descriptor: descriptor, will: will, deadline: wards[number]?.deadline), forKey: number)
      before.map { _ = close($0.descriptor) }
      return true
    case .beat(let number, let milliseconds):
      wards[number]?.deadline = now + Int64(milliseconds) * .millisecond
      // Who watches the daemon is watched by it.
      _ = clinux_send(socket, [0], 1, -1)
    case .rest(let number): wards[number]?.deadline = nil
    case .release(let number): wards.removeValue(forKey: number).map { _ = close($0.descriptor) }
    case nil: break
    }
    if descriptor >= 0 { close(descriptor) }
    return true
  }

  /// The daemon is gone.
  private mutating func orphaned() {
    isOrphan = true
    if !wards.isEmpty { complain("the daemon is gone: its guardian stops what it drove, and hangs up") }
    let now = Clock.monotonic()
    wards = wards.mapValues { ward in
      var ward = ward
      ward.speak(ward.will.dead, at: now)
      return ward
    }
  }

  private func complain(_ text: String) {
    let line = Array("vehicled: \(text)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
  }
}
