// How the display reads the fields of the ESP32 over I2C. To each request, the ESP32 replies with the field that it buffered at the
// previous request. So the display drops the first reply, and requests the heart rate again at the end; the field buffered at that last
// request is lost. A signal during a reading causes another reading.
// Source: ISM-Embedded's nano/subsystems/i2c.py (order, pauses, dropped reply), main.cpp (requestEvents), main.py (the callback of the data
// line).

import Protocols

/// The state of the display's reading.
struct MirrorReader: Sendable {
  /// The tags in the order of the requests.
  static let order = ["Name", "TempF", "Condi", "UVInd", "Humid", "CaloB", "StepC", "DistW", "Heart", "Bright", "Temp", "Heart"]

  /// The time from a request to its reply, including the I2C transfers.
  private static let requestTime: Nanoseconds = 104 * .millisecond
  /// The pause after a reply that is not empty.
  private static let pause: Nanoseconds = 100 * .millisecond
  /// The time for the database after a reading.
  private static let databaseTime: Nanoseconds = 100 * .millisecond
  /// The time for the camera, an estimate.
  private static let cameraTime: Nanoseconds = 1_500 * .millisecond
  /// The maximum length of a reply.
  private static let maxLength = 31

  /// The field to read next, and when it is read.
  private var next: (index: Int, at: Instant)?
  /// The reply of the ESP32 to the next request, whichever field is requested.
  private var buffer = ""
  private var values: [String: String] = [:]
  /// Whether a signal arrived during a reading.
  private var isSignalPending = false
  /// The time until which the display processes the last reading.
  private var busyUntil: Instant?

  var nextWake: Instant? { next?.at ?? busyUntil }

  /// Handles a signal on the data line.
  mutating func signal(at now: Instant) {
    guard next == nil, busyUntil == nil else { return isSignalPending = true }
    next = (0, now + Self.requestTime)
  }

  /// Returns the tag that the display requests now, or nil at the end of processing.
  mutating func nextRequest(at now: Instant) -> String? {
    if let next { return Self.order[next.index] }
    busyUntil = nil
    if isSignalPending {
      isSignalPending = false
      signal(at: now)
    }
    return nil
  }

  /// Reads the buffered reply, and replaces it with `reply`. Returns all values at the end of a reading.
  mutating func receive(_ reply: String, at now: Instant) -> [String: String]? {
    guard let (index, _) = next else { return nil }
    var moment = now + Self.requestTime
    if index > 0, !buffer.isEmpty {
      values[Self.order[index - 1]] = buffer
      moment += Self.pause
    }
    // The display drops 0xFF, the value of an idle bus.
    buffer = String(String.UnicodeScalarView(reply.unicodeScalars.prefix(Self.maxLength).filter { $0.value != 0xFF }))
    if index + 1 < Self.order.count {
      next = (index + 1, moment)
      return nil
    }
    defer { values = [:] }
    (next, busyUntil) = (nil, now + Self.databaseTime)
    return values
  }

  /// Extends the processing by the time of the camera.
  mutating func extendProcessing(ifTakingPictures isTakingPictures: Bool) {
    if isTakingPictures, let moment = busyUntil { busyUntil = moment + Self.cameraTime }
  }
}
