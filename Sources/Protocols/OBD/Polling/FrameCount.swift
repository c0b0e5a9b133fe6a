// The response-count digit: with it an adapter sends its prompt as soon as the frames are there, which makes 20 Hz reachable. A wrong count
// loses frames, so it is learned from a full reply, dropped at the first doubt and relearned at growing intervals, per connection.

struct FrameCount: Sendable {
  private static let timeout = [1, 1, 16, 256]

  /// The number of frames to request, 1 to 15, or nil to let the adapter time out.
  private(set) var frames: Int?
  private var isUnknown = false
  private var drops = 0
  private var fullReplies = 0

  /// A complete response came in this many frames.
  mutating func answered(frames needed: Int) {
    if let frames {
      if frames != needed { drop() }
    } else if !isUnknown {
      fullReplies += 1
      if fullReplies >= Self.timeout[min(drops, Self.timeout.count - 1)], needed <= 15 { frames = needed }
    }
  }

  /// A request with a count was not answered in full.
  mutating func drop() {
    frames = nil
    drops += 1
    fullReplies = 0
  }

  /// The adapter does not support the digit.
  mutating func isRefused() {
    frames = nil
    isUnknown = true
  }
}
