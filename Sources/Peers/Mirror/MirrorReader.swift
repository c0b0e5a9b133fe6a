// How the display's computer reads the ESP32's fields over I2C. An answer is what the ESP32 put into its buffer at the read before,
// so the display drops the first answer and asks for one field more than it wants, the heart rate again: that one is taken from the
// ESP32 and lies in the buffer until the next reading drops it. A signal that comes during a reading causes one more behind it.
// Facts: ISM-Embedded's nano/subsystems/i2c.py (order, pauses, the answer that is dropped), main.cpp (requestEvents), main.py (the
// reading runs in the callback of the data line, the database and the camera behind it).

import Protocols

struct MirrorReader: Sendable {
  static let order = ["Name", "TempF", "Condi", "UVInd", "Humid", "CaloB", "StepC", "DistW", "Heart", "Bright", "Temp", "Heart"]

  /// Between a question and its read, with the time that I2C takes for both.
  private static let question: Nanoseconds = 104 * .millisecond
  /// Behind an answer that held something.
  private static let pause: Nanoseconds = 100 * .millisecond
  /// For the database behind a reading, and for the camera (a guess).
  private static let storing: Nanoseconds = 100 * .millisecond
  private static let camera: Nanoseconds = 1_500 * .millisecond
  /// An answer holds no more.
  private static let longest = 31

  /// The field that is read next, and when.
  private var next: (index: Int, at: Instant)?
  /// What the ESP32 will answer at the next read, whatever that asks for.
  private var buffer = ""
  private var values: [String: String] = [:]
  /// The data line rose during a reading.
  private var isLatched = false
  /// The last reading has ended; until then the computer is busy with what it read.
  private var rest: Instant?

  var nextWake: Instant? { next?.at ?? rest }

  /// The data line rises.
  mutating func signal(at now: Instant) {
    guard next == nil, rest == nil else { return isLatched = true }
    next = (0, now + Self.question)
  }

  /// The field whose value goes into the buffer now; nil: the computer is done with the last reading.
  mutating func asks(at now: Instant) -> String? {
    if let next { return Self.order[next.index] }
    rest = nil
    if isLatched {
      isLatched = false
      signal(at: now)
    }
    return nil
  }

  /// Reads the buffer, into which this goes then. Gives all values of a reading once it is over.
  mutating func take(_ answer: String, at now: Instant) -> [String: String]? {
    guard let (index, _) = next else { return nil }
    var moment = now + Self.question
    if index > 0, !buffer.isEmpty {
      values[Self.order[index - 1]] = buffer
      moment += Self.pause
    }
    // The display drops 0xFF, which a bus that nobody drives reads as.
    buffer = String(String.UnicodeScalarView(answer.unicodeScalars.prefix(Self.longest).filter { $0.value != 0xFF }))
    if index + 1 < Self.order.count {
      next = (index + 1, moment)
      return nil
    }
    defer { values = [:] }
    (next, rest) = (nil, now + Self.storing)
    return values
  }

  /// What was read takes longer than usual.
  mutating func rests(longer isTakingPictures: Bool) {
    if isTakingPictures, let moment = rest { rest = moment + Self.camera }
  }
}
