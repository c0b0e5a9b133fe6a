import Foundation
import Testing

@testable import Protocols

/// Frames out in both dialects, and in at every split point.
@Suite struct CarFrameTests {
  @Test(arguments: [
    (CarOutboundMessage.stop, "Stop#$#%^%\r\n", "Stop#$#%^%"), (.proceed, "Continue#$#%^%\r\n", "Continue#$#%^%"),
    (.chosenMode(1), "ChosenMode#$#1%^%\r\n", "ChosenMode#$#1%^%"), (.infoModes(10), "InfoModes#$#10%^%\r\n", "InfoModes#$#%^%"),
    (.modes, "Modes#$#%^%\r\n", "Modes#$#%^%"), (.mainViewEntered, "MainView#$#Entered%^%\r\n", "MainView#$#Entered%^%"),
    (.status, "Status#$#%^%\r\n", "Status#$#%^%"), (.disconnect, "Disconnect#$#%^%\r\n", "Disconnect#$#%^%"),
    (.shutDown, "ShutDown#$#%^%\r\n", "ShutDown#$#%^%"), (.connectionTest, "ConnectionTest#$#%^%\r\n", "ConnectionTest#$#%^%"),
    (.videoQuality(.low), "VideoQuality#$#Low%^%\r\n", "VideoQuality#$#Low%^%"),
    (.videoStream(true), "VideoStream#$#On%^%\r\n", "VideoStream#$#On%^%"),
    (.videoStream(false), "VideoStream#$#Off%^%\r\n", "VideoStream#$#Off%^%"),
    (.button(.left, isDown: true), "LeftButtonTouchDown#$#%^%\r\n", "LeftButtonTouchDownn#$#%^%"),
    (.button(.right, isDown: false), "RightButtonTouchUp#$#%^%\r\n", "RightButtonTouchUpn#$#%^%"),
    (.message("hi; there"), "Message#$#hi; there%^%\r\n", "Message#$#hi; there%^%"),
  ]) func `every message is encoded in both dialects`(_ word: CarOutboundMessage, asBuilt: String, documented: String) {
    #expect(String(decoding: word.frame(.asBuilt), as: UTF8.self) == asBuilt)
    #expect(String(decoding: word.frame(.documented), as: UTF8.self) == documented)
  }

  @Test func `frames match the bytes of the original app`() {
    #expect(CarOutboundMessage.stop.frame(.asBuilt) == hex("53 74 6F 70 23 24 23 25 5E 25 0D 0A"))
    #expect(CarOutboundMessage.chosenMode(1).frame(.asBuilt) == hex("43 68 6F 73 65 6E 4D 6F 64 65 23 24 23 31 25 5E 25 0D 0A"))
    let tilt = CarTilt(PhoneAttitude(roll: 0.4, pitch: 0.2, yaw: 0))
    #expect(tilt.frame(.asBuilt) == Array("Gyro#$# 0.400000; 0.200000; 0.000000%^%\r\n".utf8) && tilt.frame(.asBuilt).count == 41)
    let seed = CarTilt(PhoneAttitude(roll: 0.001238, pitch: 1.234522, yaw: -2.209182))
    #expect(seed.frame(.documented) == Array("Gyro#$#0.001238;1.234522;-2.209182%^%".utf8))
  }

  // MARK: Numbers

  @Test func `numbers are printed as in C`() {
    var dice = OBDRobustnessTests.Dice(state: 7)
    let edges = [0, -0.0, 1e-7, -1e-7, 4.9e-7, -4.9e-7, 5.1e-7, -5.1e-7, 0.1, -0.1, 1.5707963267948966, -3.141592653589793, 999_999.999999]
    for number in edges + (0..<2000).map({ _ in (Double(dice.below(8_000_000)) - 4_000_000.25) / 1_234_567 }) {
      var bytes: [UInt8] = []
      CarNumber.write(CarNumber.millionths(number) ?? .max, to: &bytes)
      let printed = String(format: "%f", number)
      #expect(String(decoding: bytes, as: UTF8.self) == (printed == "-0.000000" ? "0.000000" : printed))
    }
    #expect(CarNumber.millionths(.nan) == nil && CarNumber.millionths(.infinity) == nil && CarNumber.millionths(1e300) == nil)
  }

  @Test(
    arguments: [
      ("0.0166666666667", 0.0166666666667), (" 1 ", 1), ("1e-05", 1e-05), ("-2.5", -2.5), ("+3", 3), ("0,5", nil), ("nan", nil),
      ("inf", nil),
      ("0x10", nil), ("1e999", nil), ("", nil), ("1 2", nil), ("١", nil), (String(repeating: "1", count: 33), nil),
    ] as [(String, Double?)]) func `only plain decimal numbers are accepted`(_ text: String, _ number: Double?)
  { #expect(CarNumber.read(text) == number) }

  // MARK: Texts

  @Test(arguments: [
    ("", "empty"), ("a\nb", "control"), ("a\u{7F}", "control"), ("grüße", "ASCII"), ("a#$#b", "#$#"), ("a%^%b", "%^%"), ("a%^", "%^"),
    (String(repeating: "x", count: 1009), "1 characters too long"),
  ]) func `texts that would break the frame are rejected with the reason`(_ text: String, _ words: String) {
    #expect(CarText.refusal(text)?.contains(words) == true)
  }

  @Test func `all other texts survive encoding and decoding`() {
    for text in ["hi", "a;b", "100%", "%%", "^%", "#", "#$", "$#", String(repeating: "x", count: 1008)] {
      #expect(CarText.refusal(text) == nil, "\(text)")
      for dialect in CarDialect.allCases {
        #expect(
          Self.read([CarOutboundMessage.message(text).frame(dialect)]) == [
            .message(CarInboundMessage(type: "Message", body: Array(text.utf8)))
          ])
      }
    }
  }

  @Test func `escape sequences are removed from the texts of the car`() {
    func clean(_ text: String, _ limit: Int = 100) -> String { CarText.clean(Array(text.utf8)[...], limit: limit) }
    #expect(clean("CPU usage: \u{1B}[1m5.9\u{1B}[0;32m %") == "CPU usage: 5.9 %")
    #expect(clean("a\u{1B}]0;title\u{7}b\u{8}\r\n\tc\u{1B}Md\u{1B}") == "abcd")
    #expect(clean("a\u{1B}[12") == "a" && clean("a\u{1B}[\u{1B}[1mb") == "ab")
    #expect(clean("right\u{202E}left\u{85}x") == "rightleftx" && clean("é") == "é" && clean("abcdef", 3) == "abc")
    #expect(CarText.clean([0xFF, 0x41], limit: 9) == "\u{FFFD}A")
  }

  // MARK: Decoding

  static func read(_ chunks: [[UInt8]]) -> [CarDecoder.Item] {
    var decoder = CarDecoder()
    return chunks.flatMap { read($0, &decoder) }
  }

  static func read(_ chunk: [UInt8], _ decoder: inout CarDecoder) -> [CarDecoder.Item] {
    var items: [CarDecoder.Item] = []
    var rest = chunk[...]
    while let item = decoder.next(&rest) { items.append(item) }
    return items
  }

  private static func types(_ items: [CarDecoder.Item]) -> [String] {
    items.map { if case .message(let message) = $0 { message.type } else { "!" } }
  }

  @Test func `every frame is decoded at every split point`() {
    let whole = Array(CarVector.all.joined().utf8)
    let items = Self.read([whole])
    let types = ["Gyro", "Modes", "Status", "ButtonsOn", "SpeechRecognitionOff", "VideoStreamRefresh", "VideoStreamStarted", "Message"]
    #expect(Self.types(items) == types)
    for cut in 0...whole.count { #expect(Self.read([Array(whole[..<cut]), Array(whole[cut...])]) == items) }
    #expect(Self.read(whole.map { [$0] }) == items)
  }

  @Test func `the line end between frames is optional`() {
    for end in ["", "\r", "\n", "\r\n"] {
      let text = "Gyro#$#0.1%^%\(end)ButtonsOn#$#%^%\(end)ButtonsOff#$#%^%\(end)"
      #expect(Self.types(Self.read([Array(text.utf8)])) == ["Gyro", "ButtonsOn", "ButtonsOff"])
      #expect(Self.types(Self.read(text.utf8.map { [$0] })) == ["Gyro", "ButtonsOn", "ButtonsOff"])
    }
  }

  @Test(arguments: [
    ("Gyro 0.1%^%", CarDecoder.Drop.Reason.noDelimiter), ("%^%", .noDelimiter), ("#$#x%^%", .invalidType), ("Ga\u{7}#$#x%^%", .invalidType),
    ("\(String(repeating: "T", count: 33))#$#%^%", .invalidType), ("Gyro#$#0.0Modes#$#a;b%^%", .twoMessages),
    ("Message#$#a#$#b%^%", .twoMessages), ("Message#%#hi%^%", .noDelimiter),
  ]) func `an invalid frame is dropped with the reason, and the next one is decoded`(_ text: String, _ reason: CarDecoder.Drop.Reason) {
    let bytes = Array((text + "\r\n" + CarVector.gyro).utf8)
    for cut in 0...bytes.count {
      var decoder = CarDecoder()
      let items = Self.read(Array(bytes[..<cut]), &decoder) + Self.read(Array(bytes[cut...]), &decoder)
      guard items.count == 2, case .dropped(let drop) = items[0], case .message(let message) = items[1] else {
        Issue.record("\(items)")
        continue
      }
      #expect(drop.reason == reason && drop.message.contains(reason.rawValue) && message.type == "Gyro" && decoder.badFrames == 1)
    }
  }

  @Test func `a megabyte without a terminator is one bad frame`() {
    var decoder = CarDecoder()
    var items: [CarDecoder.Item] = []
    for _ in 0..<64 { items += Self.read([UInt8](repeating: 0x41, count: 16 * 1024), &decoder) }
    #expect(decoder.bufferedCount <= CarDecoder.limit && items.count == 1 && decoder.badFrames == 1 && decoder.isOverrun)
    items = Self.read(Array("tail%".utf8), &decoder) + Self.read(Array("^%\r\n\(CarVector.modes)".utf8), &decoder)
    #expect(Self.types(items) == ["Modes"] && decoder.badFrames == 1 && !decoder.isOverrun)
  }

  @Test func `a terminator is found at the buffer limit`() {
    for extra in 0..<4 {
      var decoder = CarDecoder()
      let text = Array("A#$#".utf8) + [UInt8](repeating: 0x42, count: CarDecoder.limit - 6 + extra) + Array("%^%\r\n\(CarVector.gyro)".utf8)
      let items = Self.read(text, &decoder)
      #expect(Self.types(items).last == "Gyro" && items.count == 2 && decoder.bufferedCount == 0)
    }
  }

  @Test func `a list longer than a TCP segment is complete`() {
    let names = (0..<64).map { "Mode \($0), \(String(repeating: "n", count: 180))" }
    var rig = CarRig.ready()
    let bytes = Array("Modes#$#\(names.joined(separator: ";"))%^%\r\n".utf8)
    for start in stride(from: 0, to: bytes.count, by: 1024) {
      rig.give(.received(.main, Array(bytes[start..<min(start + 1024, bytes.count)])))
    }
    #expect(rig.values["modes"] == .value(.list(names)) && rig.number("bad-frames") == 0)
  }
}
