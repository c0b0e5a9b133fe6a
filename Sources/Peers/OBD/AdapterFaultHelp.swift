// What each fault of a simulated adapter does, in words for `vehiclesim obd --help`.

extension AdapterTrouble {
  /// What it does.
  public var help: String {
    switch self {
    case .latency: "every reply of the car comes MS (30) later"
    case .split: "replies come in bits of 1 to 20 bytes, up to MS (2) apart"
    case .latePrompt: "every prompt comes MS (50) behind its reply"
    case .lostPrompt: "a reply ends without its prompt"
    case .garbage: "NUL, 0xFF and other noise bytes stand inside a reply"
    case .noData: "NO DATA instead of the reply"
    case .stopped: "STOPPED instead of the reply"
    case .canError: "CAN ERROR instead of the reply"
    case .lvReset: "LV RESET instead of the reply, and all settings are lost"
    case .bufferFull: "a reply breaks off in the middle of a frame, with BUFFER FULL behind it"
    case .silentOverrun: "the same without a word"
    case .vendorText: "a line VENDOR MODE before the reply"
    case .refusal: "the car refuses with CODE, two hex digits: 7F, the service, CODE"
    case .pending: "the car says 78 first and answers MS (300) later, perhaps behind the prompt"
    case .interleave: "another control unit's message of the same kind comes between the frames"
    case .stale: "NO DATA, and the reply stands before the next one"
    case .disconnect: "half a reply, then the link is gone"
    case .hang: "the adapter is deaf and dumb for MS, or for ever"
    case .babble: "random bytes without end and without a prompt"
    case .echo: "ATE0 is acknowledged, but the echo stays"
    case .noLineEnds: "no CR and no LF is ever printed"
    case .noCount: "a response-count digit is answered with ?"
    case .wrongCount: "a response-count digit of two and more waits for one frame less"
    case .clone: "ATS0, ATH1, ATCRA and STI are answered with ?"
    case .noAdaptive: "ATAT is answered with ?"
    case .noMasks: "ATCF, ATCM and ATCRA with X are answered with ?"
    case .noFlowControl: "ATFC and ATCFC are answered with ?"
    case .noLong: "ATAL is answered with ?"
    case .noMemory: "ATM is answered with ?"
    case .noRepeat: "a lone CR is answered with ? instead of the last command's reply"
    case .fixedMonitor: "ATCSM is answered with ?"
    case .hollowHeaders: "ATH1 is acknowledged without effect"
    case .hollowSpaces: "ATS0 is acknowledged without effect"
    case .hollowFilter: "ATCRA, ATCF and ATCM are acknowledged without effect"
    case .hollowTiming: "ATST and ATAT are acknowledged without effect"
    case .falseVersion: "it says it is an ELM327 v2.1, and knows no more than before"
    case .noisyBanner: "a byte of noise before the banner after ATZ"
    case .oddLF: "LF is answered with ?"
    case .lockup: "ATTPA0 locks it up until it is plugged in again"
    case .onceOnly: "only the first connection finds it alive"
    }
  }
}
