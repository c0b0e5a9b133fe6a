// Parses the replies of one adapter, and detects one that always omits the checksum.

struct ReplyParser: Sendable {
  private(set) var reader = CANReader()
  /// Replies whose lines lacked only their checksum; nil: one had it.
  private var missingChecks: Int? = 0

  /// Parses the reply to a poll (`learnsChecks`) or another request.
  mutating func parse(_ dialogue: ELMDialogue, learnsChecks: Bool) -> CANReader.Outcome {
    let outcome = reader.read(dialogue.reply, from: dialogue.body)
    guard learnsChecks else { return outcome }
    if reader.checksums.areValid {
      missingChecks = nil
      reader.expectChecksums(true)
    }
    guard !reader.omitsChecksums, reader.checksums.areMissing, let missing = missingChecks else { return outcome }
    missingChecks = missing + 1
    guard missing >= 2 else { return outcome }
    reader.expectChecksums(false)
    return reader.read(dialogue.reply, from: dialogue.body)
  }
}
