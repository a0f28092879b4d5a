// Writes the golden files of analyzers into the current folder, with Lucene's own filters (Lucene 10.5, whose classes are in
// the jar that crates/bench/src/peers/lucene.rs describes):
//
//   java -cp anserini-2.3.0-fatjar.jar Golden.java
//
// All words and texts are made or chosen here.

import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.lucene.analysis.CharArraySet;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.StopFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.cjk.CJKBigramFilter;
import org.apache.lucene.analysis.core.KeywordTokenizer;
import org.apache.lucene.analysis.core.WhitespaceTokenizer;
import org.apache.lucene.analysis.en.EnglishPossessiveFilter;
import org.apache.lucene.analysis.en.PorterStemFilter;
import org.apache.lucene.analysis.miscellaneous.ASCIIFoldingFilter;
import org.apache.lucene.analysis.snowball.SnowballFilter;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tokenattributes.TypeAttribute;

public class Golden {
  /** A stemmer of Lucene, with beginnings and endings of words that are joined in all ways. */
  record Language(String name, String beginnings, String endings) {}

  static final List<Language> LANGUAGES = List.of(
      new Language("Arabic", "كتاب مدرس ولد الكتاب والمعلم بيت سيارة مكتب", "- ات ون ين ان ها هم نا ية ه ي تما"),
      new Language("Armenian", "գիրք տուն մարդ քաղաք աշխատ գեղեց ուսուց", "- եր ներ ի ից ով ում ության ական ել ացնել ներից"),
      new Language("Basque", "etxe mendi gizon lagun liburu haur ikas", "- a ak ek etan ko tik ren tasun garri pen tzaile"),
      new Language("Catalan", "cant treball ciutat llibr form nacion ràpid", "- s es ar ava ant ment ació acions itat ista able aríem"),
      new Language("Danish", "arbejd hus bog venlig skole kirk gynge vinter rigtig a000 b11", "- e er en erne ede ende hed heden els lighed øst igt ser"),
      new Language("Dutch", "werk huis boek groot loop kinder lever aardig reiz", "- en e s heid heden lijk ing ingen je tje baar end ig ene"),
      new Language("English",
          "add err off egg run hop connect relat nation beauti happi organ generat univers evening skis dy news inning 'err yell "
              + "commun arsen hurr controll fall box troubl sens form anness",
          "- s es ed ing ings 's s' ly edly ingly ness ful ation ational izer iveness ity y ies ied ement er ion al ogy eed"),
      new Language("Estonian", "maja raamat inimes linn tööta õpeta lugu", "- d de le st sse ga tele des ma takse line mine ja"),
      new Language("Finnish", "talo kirja ihmi kaupunki puhu opetta kuu e00 kissa", "- n ssa sta lla lle ksi t ja in isten mme nsa kin minen"),
      new Language("French",
          "chant fin nation rapid final organis continu amour mang héro laïc ambigu haï naï égo ouï aig bijo palai jou appel",
          "- e s es er ez ait ant ment ement ité ation ateur ive eux euse ique isme iste ir issent is ïs ït ïr ïque ïté uë"),
      new Language("German",
          "arbeit haus häus buch freund schul lern straß find system michael zuerst neu aktuell quell feuer bau schön goethe "
              + "aeu abenteu treu lieb kind",
          "- e en er ern em es s st est ung ungen heit keit lich ig isch igkeit et ete end lichkeit bar chen ns"),
      new Language("Greek", "βιβλι σπιτ ανθρωπ πολ δασκαλ γραφ εργα", "- ο ου οσ οι α ων εσ ικοσ ικη ισμοσ ακι ησαμε αμε"),
      new Language("Hindi", "लड़क किताब घर पुस्तक बोल पढ़ शहर", "- ा ी े ों ें ना ता ती ते कर ाओं ियाँ"),
      new Language("Hungarian", "ház könyv ember város tanul olvas barát", "- ak ek ok ban ben nak nek val vel unk otok ai éi ként ért"),
      new Language("Indonesian", "ajar tulis main baca kerja makan buku", "- an kan i nya lah kah ku mu annya kannya pun"),
      new Language("Irish", "leabhar teach fear bean scoil gaeil múin", "- a acht aí ín eanna ach acha aigh eoireacht óir úla"),
      new Language("Italian", "cant libr nazion veloc canzon lavor amic divan parl", "- o a i e are ando mente zione zioni ità ista evole isti o' ano erebbe"),
      new Language("Nepali", "घर किताब मान्छे शहर बोल पढ लेख", "- हरू लाई को मा बाट ले सँग का की नु छ"),
      new Language("Norwegian", "arbeid hus bok venn skol mast pers travers vinter", "- e er en ene s ers het heten lig eleg ende ede ets"),
      new Language("Porter", "add run connect relat nation beauti organ generat hop", "- s es ed ing ly ness ful ation izer ity y ies ement"),
      new Language("Portuguese", "cant livr naç rápid trabalh amig form", "- o a os as ar ando mente ção ções idade ista ável eiro íamos"),
      new Language("Romanian", "cânt cărț nați rapid lucr prieten form bucur", "- a e i ul lor ile are ând ește ești ație ații tate ist ţie şti"),
      new Language("Russian", "книг дом человек город работ учител ёлк красив", "- а у ы ой ами ах ость остью ного ейший лся ем ённый"),
      new Language("Serbian", "књиг kuć čovek grad radi učitelj љуб", "- a e i om ama ског ost nost ima ijeg ujem"),
      new Language("Spanish", "cant libr nacion rápid trabaj amig form inform", "- o a os as ar ando mente ación acion idad ista able aríamos ándolo ía"),
      new Language("Swedish", "arbet hus bok vänlig skol liv nerv lös röst utl mellan problem", "- a ar en et arna s lig fullt öst löst heten ade ande iskt"),
      new Language("Tamil", "வீடு புத்தகம் மனிதன் நகரம் மரம் பள்ளி", "- கள் களை இல் க்கு உடன் ஆக வின் ந்த"),
      new Language("Turkish", "ev kitap insan şehir çocuk oku türkiye istanbul", "- ler lar de da 'de 'nin in ım imiz lik ci den yor lerden"),
      new Language("Yiddish", "בוך הויז מענטש שטאט ארבעט שרייב קינד", "- ער ן ס לעך ונג קייט עס סטו ט נדיק"));

  /** Texts for whole chains: words of many scripts, alone and side by side. */
  static final List<String> TEXTS = List.of(
      "我是中国人。",
      "一",
      "一 二",
      "ひらがなとカタカナ・ﾊﾝｶｸ漢字かな",
      "東京タワーtokyo2020年 カ カー",
      "안녕하세요 한글입니다 한 한글abc 韓國한국",
      "中abc国 中、国人 中\u3000国人",
      "か\u3099き 神\u200D社 \uD840\uDC00\uD840\uDC01の",
      "々〇ヶ月 ㍿ ㋀ ㄅㄆ ㆠ",
      "Élan naïve Straße GROẞ Ærøskøbing smørrebrød Łódź",
      "œuvre ﬁnal ﬃ Ⓐ ⒇ ⁇ ¹² ½ № ｆｕｌｌ Ａ１",
      "e\u0301te\u0301 Ǆ ǆ ǅ ĳ ŉ ſ ø̈",
      "l’été “quoted” dog’s ‘x’ a\u2013b",
      "Ελλάδα Привет ёлка",
      "ภาษาไทย中文ไทย",
      "\u1100\u1161\u11A8 ㄱㄴ ﾡﾢ",
      "한.글 한'글 カ_カ ー _漢 ｶﾞｷﾞ 1カ カ1 漢1",
      "The dogs' and the Cat's TAIL: it's not U.S.A.'s relational database");

  static final List<String> CJK_TYPES = List.of("<IDEOGRAPHIC>", "<HIRAGANA>", "<KATAKANA>", "<HANGUL>");

  static final List<String> STOP_WORDS = List.of("der", "die", "und", "über", "été", "国人");

  public static void main(String[] arguments) throws IOException {
    write("stems.tsv", stems());
    write("fold.tsv", folds());
    write("cjk.tsv", cjkCharacters());
    write("chains.tsv", chains());
  }

  static void write(String name, List<String> lines) throws IOException {
    Files.writeString(Path.of(name), String.join("\n", lines) + "\n");
  }

  /** Language, word, stem. */
  static List<String> stems() throws IOException {
    List<String> lines = new ArrayList<>();
    for (Language language : LANGUAGES) {
      for (String beginning : language.beginnings.split(" ")) {
        for (String ending : language.endings.split(" ")) {
          String word = beginning + (ending.equals("-") ? "" : ending);
          String stem = String.join(" ", terms(new KeywordTokenizer(), word, in -> new SnowballFilter(in, language.name)));
          lines.add(language.name.toLowerCase() + "\t" + word + "\t" + stem);
        }
      }
    }
    return lines;
  }

  /** Each character that is folded, and to what. */
  static List<String> folds() {
    List<String> lines = new ArrayList<>();
    for (int code = 0x80; code <= Character.MAX_CODE_POINT; code++) {
      if (code >= Character.MIN_SURROGATE && code <= Character.MAX_SURROGATE) continue;
      char[] input = Character.toChars(code);
      char[] output = new char[4 * input.length];
      String folded = new String(output, 0, ASCIIFoldingFilter.foldToASCII(input, 0, output, 0, input.length));
      if (!folded.equals(new String(input))) lines.add(new String(input) + "\t" + folded);
    }
    return lines;
  }

  /** Ranges of the characters whose words CJKBigramFilter joins. */
  static List<String> cjkCharacters() throws IOException {
    List<String> lines = new ArrayList<>();
    int start = -1;
    for (int code = 0x80; code <= Character.MAX_CODE_POINT + 1; code++) {
      boolean is = code <= Character.MAX_CODE_POINT && !(code >= Character.MIN_SURROGATE && code <= Character.MAX_SURROGATE)
          && isCjk(Character.toString(code));
      if (is && start < 0) start = code;
      if (!is && start >= 0) {
        lines.add(String.format("%04X\t%04X", start, code - 1));
        start = -1;
      }
    }
    return lines;
  }

  static boolean isCjk(String character) throws IOException {
    StandardTokenizer tokenizer = new StandardTokenizer();
    TypeAttribute type = tokenizer.addAttribute(TypeAttribute.class);
    tokenizer.setReader(new StringReader(character));
    tokenizer.reset();
    return tokenizer.incrementToken() && CJK_TYPES.contains(type.type());
  }

  /** Chain, text, terms separated by spaces. */
  static List<String> chains() throws IOException {
    CharArraySet english = org.apache.lucene.analysis.en.EnglishAnalyzer.ENGLISH_STOP_WORDS_SET;
    CharArraySet own = new CharArraySet(STOP_WORDS, false);
    List<String> lines = new ArrayList<>();
    for (String text : TEXTS) {
      add(lines, "words+cjk-bigram", text, CJKBigramFilter::new);
      add(lines, "words+cjk-bigram+lowercase+fold", text, in -> new ASCIIFoldingFilter(new LowerCaseFilter(new CJKBigramFilter(in))));
      add(lines, "words+lowercase+fold", text, in -> new ASCIIFoldingFilter(new LowerCaseFilter(in)));
      add(lines, "words+fold+lowercase", text, in -> new LowerCaseFilter(new ASCIIFoldingFilter(in)));
      add(lines, "words+possessive+lowercase+fold+stop+porter", text,
          in -> new PorterStemFilter(new StopFilter(new ASCIIFoldingFilter(new LowerCaseFilter(new EnglishPossessiveFilter(in))), english)));
      add(lines, "words+lowercase+snowball:german+fold", text,
          in -> new ASCIIFoldingFilter(new SnowballFilter(new LowerCaseFilter(in), "German")));
      add(lines, "words+cjk-bigram+lowercase+stop:own+snowball:french", text,
          in -> new SnowballFilter(new StopFilter(new LowerCaseFilter(new CJKBigramFilter(in)), own), "French"));
      lines.add("whitespace+fold\t" + text + "\t"
          + String.join(" ", terms(new WhitespaceTokenizer(), text, ASCIIFoldingFilter::new)));
    }
    return lines;
  }

  static void add(List<String> lines, String chain, String text, Function<TokenStream, TokenStream> filters) throws IOException {
    lines.add(chain + "\t" + text + "\t" + String.join(" ", terms(new StandardTokenizer(), text, filters)));
  }

  static List<String> terms(Tokenizer tokenizer, String text, Function<TokenStream, TokenStream> filters) throws IOException {
    tokenizer.setReader(new StringReader(text));
    List<String> terms = new ArrayList<>();
    try (TokenStream stream = filters.apply(tokenizer)) {
      CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
      stream.reset();
      while (stream.incrementToken()) terms.add(term.toString());
      stream.end();
    }
    return terms;
  }
}
