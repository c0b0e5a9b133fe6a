// One client of a stream link and the machine that serves it.

import Glibc
import Peers
import Protocols

final class PeerConnection: EventSource {
  private(set) var machine: any Machine
  /// No client has the terminal open: bytes that are sent are discarded.
  var hasNoReader = false
  /// Called when the machine resets its link.
  var linkReset: () -> Void = {}

  private let file: Int32
  private let name: String
  private let log: ActivityLog
  private var effects = Effects()
  private var buffer = [UInt8](repeating: 0, count: 1024)
  private var pending: (bytes: ArraySlice<UInt8>, id: SendID)?
  /// The client has closed its sending direction, but may still read.
  private var inputEnded = false

  /// Takes ownership of the descriptor. A machine that is not new keeps its state and gets a new link.
  init(_ file: Int32, machine: any Machine, isNew: Bool = true, name: String, log: ActivityLog) {
    self.file = file
    self.machine = machine
    self.name = name
    self.log = log
    super.init()
    let now = SimulatorClock.now
    if isNew { feed(.started(restored: [:], wall: WallTime(microseconds: 0)), at: now) }
    feed(.linkChanged(.main, .up(maximumSend: nil)), at: now)
    log.write(name, "up")
  }

  override var descriptor: Int32 { file }

  override var interest: Int16 {
    Int16(pending != nil ? POLLOUT : inputEnded ? 0 : POLLIN)
  }

  override func woken(at now: Instant) { feed(.wake, at: now) }

  override func ready(_ events: Int16, at now: Instant) {
    if events & Int16(POLLOUT) != 0, let id = flush() { feed(.sent(id, failure: nil), at: now) }
    if events & Int16(POLLIN) != 0, !isClosed {
      receive(at: now)
    } else if events & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 {
      close()
    }
  }

  /// Discards bytes that the client has not read.
  func forget(at now: Instant) {
    guard let id = pending?.id else { return }
    pending = nil
    feed(.sent(id, failure: nil), at: now)
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(file)
    machine.handle(.linkChanged(.main, .down("closed")), at: SimulatorClock.now, &effects)
    log.write(name, "down")
  }

  /// Discards unread input: the kernel resets a socket that is closed with unread input, which could lose the reply.
  private func discardInput() {
    for _ in 0..<64 where recv(file, &buffer, buffer.count, Int32(MSG_DONTWAIT)) <= 0 { return }
  }

  private func receive(at now: Instant) {
    let count = read(file, &buffer, buffer.count)
    if count > 0 {
      let bytes = Array(buffer.prefix(count))
      hasNoReader = false
      log.write(name, "< \(shown(bytes))")
      feed(.received(.main, bytes), at: now)
    } else if count == 0 {
      inputEnded = true
      feed(.wake, at: now)
    } else if errno != EAGAIN && errno != EINTR {
      close()
    }
  }

  /// Feeds inputs to the machine until it has nothing more to send immediately.
  private func feed(_ input: Input, at now: Instant) {
    var next: Input? = input
    while let input = next, !isClosed {
      next = nil
      effects.removeAll()
      machine.handle(input, at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id?, let isSecret):  // peers have one send in flight at a time
          log.write(name, "> \(PeerConnection.readable(bytes, most: isSecret ? 0 : bytes.count))")
          pending = (bytes[...], id)
          if let id = flush() { next = .sent(id, failure: nil) }
        case .event(_, let text): log.write(name, text)
        case .resetLink:
          discardInput()
          close()
          linkReset()
        default: break
        }
      }
    }
    wake = isClosed ? nil : machine.nextWake
    if inputEnded, wake == nil, pending == nil { close() }
  }

  /// Writes pending bytes. Returns the id of the send once all of it is written.
  private func flush() -> SendID? {
    while let (bytes, id) = pending, !isClosed {
      if bytes.isEmpty || hasNoReader {
        pending = nil
        return id
      }
      let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if count > 0 {
        pending?.bytes = bytes.dropFirst(count)
      } else if errno == EAGAIN {
        return nil
      } else if errno != EINTR {
        close()
      }
    }
    return nil
  }

  /// Received bytes for the log, without secrets.
  private func shown(_ bytes: [UInt8]) -> String {
    PeerConnection.readable(bytes, most: (machine as? any Redacting)?.printableCount(of: bytes) ?? bytes.count)
  }

  /// The first bytes with escapes (`ATZ\r`, `\xFC`), and the number of those left out.
  static func readable(_ bytes: [UInt8], most: Int) -> String {
    let text = readable(bytes.prefix(most))
    let rest = bytes.count - most
    return rest > 0 ? "\(text)(\(rest) bytes redacted)" : text
  }

  static func readable(_ bytes: some Sequence<UInt8>) -> String {
    bytes.reduce(into: "") { text, byte in
      switch byte {
      case 0x0D: text += "\\r"
      case 0x0A: text += "\\n"
      case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}
