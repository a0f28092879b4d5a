// Lucene, driven by the protocol of protocol.py. Times are taken inside the JVM, around one search.
//
// The index is made from the postings of the suite: no tokenizer, no stop list, no positions. A document is a stream of
// its terms with their frequencies. Documents keep their order, in one segment.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.BytesTermAttribute;
import org.apache.lucene.analysis.tokenattributes.TermFrequencyAttribute;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LogByteSizeMergePolicy;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.Version;

public final class LucenePeer {
    private static final float K1 = 0.9f, B = 0.4f;
    private static final String TEXT = "text", ID = "id";
    private static final double BUFFER_MB = 1024;
    // Before the first times of a mode, k and kind of answer, all queries run at least this often and this long, so that
    // the JIT has compiled what they need.
    private static final int WARM_UP_RUNS = 5;
    private static final long WARM_UP_NS = 3_000_000_000L;

    private final IndexSearcher searcher;
    private final LeafReader segment;
    private final List<String> warm = new ArrayList<>();

    private LucenePeer(Path index) throws IOException {
        DirectoryReader reader = DirectoryReader.open(new MMapDirectory(index));
        if (reader.leaves().size() != 1) {
            throw new IOException(reader.leaves().size() + " segments instead of one");
        }
        segment = reader.leaves().get(0).reader();
        searcher = new IndexSearcher(reader);
        searcher.setSimilarity(new BM25Similarity(K1, B));
        // Only the search itself counts, not answers that were kept.
        searcher.setQueryCache(null);
    }

    public static void main(String[] arguments) throws IOException {
        // Keeps the output of libraries apart from replies.
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        LucenePeer peer;
        try {
            Path index = Path.of(arguments[1]);
            if (!Files.exists(index.resolve("segments_1"))) {
                new Builder(Path.of(arguments[0])).build(index);
            }
            peer = new LucenePeer(index);
            replies.println(about(json, index));
        } catch (Exception error) {
            replies.println(failure(json, error));
            return;
        }
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            try {
                replies.println(peer.reply(json, json.readTree(line)));
            } catch (Exception error) {
                replies.println(failure(json, error));
            }
        }
    }

    private static ObjectNode failure(ObjectMapper json, Exception error) {
        return json.createObjectNode().put("error", error.toString());
    }

    private static ObjectNode about(ObjectMapper json, Path index) throws IOException {
        long listBytes = 0;
        try (var files = Files.list(index)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String name = file.toString();
                // Documents and frequencies with their bounds; terms are in other files.
                if (name.endsWith(".doc") || name.endsWith(".psm")) {
                    listBytes += Files.size(file);
                }
            }
        }
        boolean hasSimd = ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();
        String java = System.getProperty("java.vendor") + " " + Runtime.version();
        ObjectNode about = json.createObjectNode();
        about.put("version", Version.LATEST + ", Java " + java + (hasSimd ? ", SIMD" : ", no SIMD"));
        about.put("list_bytes", listBytes);
        ObjectNode algorithms = about.putObject("algorithms");
        algorithms.putArray("or").add("");
        algorithms.putArray("and").add("");
        return about;
    }

    private ObjectNode reply(ObjectMapper json, JsonNode request) throws IOException {
        ObjectNode reply = json.createObjectNode();
        int k = request.get("k").asInt();
        if (request.get("what").asText().equals("overhead")) {
            // Times are taken inside the JVM, so there is nothing to subtract.
            return reply.put("empty_us", 0.0).put("row_us", 0.0);
        }
        var occur = request.get("mode").asText().equals("and") ? BooleanClause.Occur.MUST : BooleanClause.Occur.SHOULD;
        List<String[]> queries = new ArrayList<>();
        for (JsonNode terms : request.get("queries")) {
            String[] query = new String[terms.size()];
            for (int at = 0; at < query.length; at++) {
                query[at] = terms.get(at).asText();
            }
            queries.add(query);
        }
        if (request.get("what").asText().equals("answers")) {
            ArrayNode answers = reply.putArray("answers");
            for (String[] terms : queries) {
                ScoreDoc[] hits = search(terms, occur, k);
                String[] ids = ids(hits);
                ArrayNode answer = answers.addArray();
                for (int rank = 0; rank < hits.length; rank++) {
                    answer.addArray().add(ids[rank]).add(hits[rank].score);
                }
            }
            return reply;
        }
        boolean withIds = request.get("ids").asBoolean();
        warmUp(queries, occur, k, withIds);
        ArrayNode times = reply.putArray("us"), rows = reply.putArray("rows");
        for (String[] terms : queries) {
            long start = System.nanoTime();
            ScoreDoc[] hits = search(terms, occur, k);
            int count = withIds ? ids(hits).length : hits.length;
            times.add((System.nanoTime() - start) / 1e3);
            rows.add(count);
        }
        return reply;
    }

    private void warmUp(List<String[]> queries, BooleanClause.Occur occur, int k, boolean withIds) throws IOException {
        String cell = occur + " " + k + " " + withIds;
        if (warm.contains(cell)) {
            return;
        }
        warm.add(cell);
        long start = System.nanoTime();
        for (int run = 0; run < WARM_UP_RUNS || System.nanoTime() - start < WARM_UP_NS; run++) {
            for (String[] terms : queries) {
                ScoreDoc[] hits = search(terms, occur, k);
                if (withIds) {
                    ids(hits);
                }
            }
        }
    }

    private ScoreDoc[] search(String[] terms, BooleanClause.Occur occur, int k) throws IOException {
        Query query;
        if (terms.length == 1) {
            query = new TermQuery(new Term(TEXT, terms[0]));
        } else {
            BooleanQuery.Builder builder = new BooleanQuery.Builder();
            for (String term : terms) {
                builder.add(new TermQuery(new Term(TEXT, term)), occur);
            }
            query = builder.build();
        }
        // Counts no more hits than it must, so that documents that cannot enter are skipped from the first k on.
        return searcher.search(query, new TopScoreDocCollectorManager(k, null, 1)).scoreDocs;
    }

    private String[] ids(ScoreDoc[] hits) throws IOException {
        BinaryDocValues values = segment.getBinaryDocValues(ID);
        String[] ids = new String[hits.length];
        for (int rank = 0; rank < hits.length; rank++) {
            // Every document has an id, so that documents can be looked up in any order.
            values.advanceExact(hits[rank].doc);
            ids[rank] = values.binaryValue().utf8ToString();
        }
        return ids;
    }

    /** Makes an index of the files described in postings.rs. */
    private static final class Builder {
        private final List<BytesRef> terms = new ArrayList<>();
        private final List<String> ids;
        // The postings of document d are those from starts[d] to starts[d + 1].
        private final int[] starts;
        private final int[] termOf;
        private final int[] frequencyOf;

        Builder(Path postings) throws IOException {
            for (String term : lines(postings.resolve("fwd.terms"))) {
                terms.add(new BytesRef(term));
            }
            ids = lines(postings.resolve("fwd.documents"));
            starts = new int[ids.size() + 1];
            // The first sequence, of length 1, holds the number of documents.
            try (Numbers documents = new Numbers(postings.resolve("inv.docs"))) {
                documents.next();
                documents.next();
                for (int term = 0; term < terms.size(); term++) {
                    for (int left = documents.next(); left > 0; left--) {
                        starts[documents.next() + 1]++;
                    }
                }
            }
            for (int document = 0; document < ids.size(); document++) {
                starts[document + 1] = Math.addExact(starts[document + 1], starts[document]);
            }
            termOf = new int[starts[ids.size()]];
            frequencyOf = new int[termOf.length];
            int[] next = starts.clone();
            try (Numbers documents = new Numbers(postings.resolve("inv.docs"));
                    Numbers frequencies = new Numbers(postings.resolve("inv.freqs"))) {
                documents.next();
                documents.next();
                for (int term = 0; term < terms.size(); term++) {
                    frequencies.next();
                    for (int left = documents.next(); left > 0; left--) {
                        int at = next[documents.next()]++;
                        termOf[at] = term;
                        frequencyOf[at] = frequencies.next();
                    }
                }
            }
        }

        /** Lines end in a line feed only; terms and ids may have other separators in them. */
        private static List<String> lines(Path file) throws IOException {
            byte[] bytes = Files.readAllBytes(file);
            List<String> lines = new ArrayList<>();
            for (int start = 0, at = 0; at < bytes.length; at++) {
                if (bytes[at] == '\n') {
                    lines.add(new String(bytes, start, at - start, StandardCharsets.UTF_8));
                    start = at + 1;
                }
            }
            return lines;
        }

        void build(Path index) throws IOException {
            FieldType type = new FieldType();
            type.setTokenized(true);
            type.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
            type.freeze();
            IndexWriterConfig config = new IndexWriterConfig();
            config.setSimilarity(new BM25Similarity(K1, B));
            config.setRAMBufferSizeMB(BUFFER_MB);
            config.setUseCompoundFile(false);
            // Merges neighbours only, so that documents keep their order.
            LogByteSizeMergePolicy policy = new LogByteSizeMergePolicy();
            policy.setNoCFSRatio(0);
            config.setMergePolicy(policy);
            try (IndexWriter writer = new IndexWriter(new MMapDirectory(index), config)) {
                for (int number = 0; number < ids.size(); number++) {
                    Document document = new Document();
                    document.add(new Field(TEXT, new Terms(number), type));
                    document.add(new BinaryDocValuesField(ID, new BytesRef(ids.get(number))));
                    writer.addDocument(document);
                }
                writer.forceMerge(1);
            }
        }

        /** The terms of one document with their frequencies. */
        private final class Terms extends TokenStream {
            private final BytesTermAttribute term = addAttribute(BytesTermAttribute.class);
            private final TermFrequencyAttribute frequency = addAttribute(TermFrequencyAttribute.class);
            private final int end;
            private int at;

            Terms(int document) {
                at = starts[document];
                end = starts[document + 1];
            }

            @Override
            public boolean incrementToken() {
                if (at == end) {
                    return false;
                }
                clearAttributes();
                term.setBytesRef(terms.get(termOf[at]));
                frequency.setTermFrequency(frequencyOf[at]);
                at++;
                return true;
            }
        }
    }

    /** A file of 32-bit numbers, read in order. */
    private static final class Numbers implements AutoCloseable {
        private final FileChannel file;
        private final ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 20).order(ByteOrder.LITTLE_ENDIAN).limit(0);

        Numbers(Path path) throws IOException {
            file = FileChannel.open(path);
        }

        int next() throws IOException {
            if (buffer.remaining() < Integer.BYTES) {
                buffer.compact();
                while (buffer.position() < Integer.BYTES) {
                    if (file.read(buffer) < 0) {
                        throw new IOException("a file of postings ends too early");
                    }
                }
                buffer.flip();
            }
            return buffer.getInt();
        }

        @Override
        public void close() throws IOException {
            file.close();
        }
    }
}
