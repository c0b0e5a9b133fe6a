// camera record: writes the JPEG pictures of a camera's stream to a file, which ffmpeg and mpv can read as MJPEG.

import ArgumentParser
import Glibc
import Protocols

struct CameraRecordCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "record", abstract: "Record video from an RC car's camera.",
    usage: "vehiclectl camera record [<options>] [<device>] <file>",
    discussion: """
      Runs until interrupted, or for --seconds. The file is a sequence of JPEG images (MJPEG); play it with mpv FILE or \
      ffplay -f mjpeg FILE.
      Switch the video on first: vehiclectl set car.video on
      """)

  /// The time in seconds without a picture after which the recording fails.
  private static let pictureTimeout = 10.0

  @OptionGroup var common: CommonOptions
  @Option(help: "Stop after this many seconds.", transform: WatchCommand.positive)
  var seconds: Int?
  @OptionGroup var target: CameraFile

  func perform(_ output: Output) throws {
    let (device, file, force) = try target.checked()
    Interrupt.catchSignals()
    let camera = try Camera(of: device, try common.connect(output))
    var deadline = Clock.monotonic + common.replyTimeout
    let stream = try VideoStream(camera.url, within: common.replyTimeout)
    var descriptor: Int32?  // the file is created with the first picture
    var start: Double?
    var lastShown = 0.0
    var (frames, size) = (0, 0)
    defer {
      if let descriptor, descriptor != STDOUT_FILENO { close(descriptor) }
      if start != nil { output.progress(nil) }
      if descriptor != nil, output.json, file != "-" {
        output.json(["device": .string(camera.device), "file": .string(file), "frames": .int(frames), "bytes": .int(size)])
      } else if let start {
        output.note("recorded \(Self.summary(frames, size, Clock.monotonic - start))")
      }
    }
    while !Interrupt.received, start.map({ Clock.monotonic - $0 < Double(seconds ?? .max) }) ?? true {
      guard let picture = try stream.next(within: 0.2) else {
        guard Clock.monotonic < deadline else {
          throw start == nil
            ? Failure.timeout(seconds: common.replyTimeout)
            : .other("no picture for \(Format.duration(Self.pictureTimeout)): the video may be off; see: vehiclectl status")
        }
        continue
      }
      let now = Clock.monotonic
      deadline = now + Self.pictureTimeout
      start = start ?? now
      let target = try descriptor ?? (file == "-" ? STDOUT_FILENO : RecordCommand.create(file, force: force))
      descriptor = target
      if target == STDOUT_FILENO {
        output.bytes(picture)
      } else if !Output.write(all: picture[...], to: target) {
        throw Failure.other("cannot write \(file): \(String(cString: strerror(errno))); the file is incomplete")
      }
      frames += 1
      size += picture.count
      guard now - lastShown >= FullScreen.period else { continue }
      lastShown = now
      output.progress(Self.summary(frames, size, now - (start ?? now)))
    }
    if start == nil { throw Failure.other("interrupted") }  // nothing was recorded
  }

  /// A summary such as `120 pictures, 4.3 MB in 8.0 s, 15.0 pictures/s`.
  static func summary(_ frames: Int, _ bytes: Int, _ seconds: Double) -> String {
    let amount = bytes < 1_000_000 ? "\(Format.tenths(Double(bytes) / 1e3)) kB" : "\(Format.tenths(Double(bytes) / 1e6)) MB"
    // n pictures span n - 1 intervals.
    let rate = frames > 1 && seconds > 0 ? ", \(Format.tenths(Double(frames - 1) / seconds)) pictures/s" : ""
    return "\(frames) \(frames == 1 ? "picture" : "pictures"), \(amount) in \(Format.duration(seconds))\(rate)"
  }
}
