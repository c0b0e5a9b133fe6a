// The inputs of a manual drive: keys of the terminal, a gamepad or wheel, and keyboards that report releases.

import Glibc

struct DriveInputs {
  enum Event {
    case key(DriveKey)
    case button(GamepadMapping.Press)
    /// The terminal is closed.
    case closed
  }

  /// The terminal that keys are read from, if any.
  let terminal: RawTerminal?
  let stick: (any GameController)?
  let keyboard: (any Keyboard)?
  private var keys = KeyDecoder()

  init(terminal: RawTerminal?, stick: (any GameController)?, keyboard: (any Keyboard)?) {
    self.terminal = terminal
    self.stick = stick
    self.keyboard = keyboard
  }

  var descriptors: [Int32] { [terminal?.descriptor ?? -1, stick?.descriptor ?? -1] + (keyboard?.descriptors ?? []) }

  /// Reads the inputs that are ready. The elements of `ready` correspond to `descriptors`. Throws if the stick or a keyboard was unplugged.
  mutating func read(_ ready: [Bool]) throws(Failure) -> [Event] {
    // The keyboard comes first: it reports whether a key from the terminal is still down.
    if let keyboard, ready.dropFirst(2).contains(true) { try keyboard.read() }
    var events: [Event] = []
    if let terminal, ready[0] {
      var bytes = [UInt8](repeating: 0, count: 256)
      let count = Glibc.read(terminal.descriptor, &bytes, bytes.count)
      if count > 0 {
        events += keys.decode(bytes[..<count]).compactMap(DriveKey.init).map { .key($0) }
      } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
        events.append(.closed)
      }
    }
    if let stick, ready[1] { events += try stick.read().map { .button($0) } }
    return events
  }
}
